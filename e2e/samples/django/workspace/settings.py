INSTALLED_APPS = ["pages"]
SECRET_KEY = "only for this sample"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": ["templates"],
        "APP_DIRS": True,
    },
]
