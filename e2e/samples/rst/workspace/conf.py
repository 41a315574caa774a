project = "Geometry"
extensions = []
