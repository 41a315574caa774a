//! The samples that are part of the binary. A test holds the list equal to the folder.

/// A sample: its name and its files as (path below its folder, text).
type Files = (&'static str, &'static [(&'static str, &'static str)]);

macro_rules! samples {
    ($($name:literal: $($path:literal)*;)*) => {
        &[$((
            $name,
            &[$(($path, include_str!(concat!("../../samples/", $name, "/", $path)))),*],
        )),*]
    };
}

/// Every sample.
pub(super) const SAMPLES: &[Files] = samples! {
    "bash":
        "reopened/main.sh"
        "sample.yaml"
        "workspace/lib/area.sh"
        "workspace/main.sh"
        "workspace/report.sh"
    ;
    "cpp":
        "reopened/main.cpp"
        "sample.yaml"
        "workspace/compile_commands.json"
        "workspace/geometry.cpp"
        "workspace/geometry.h"
        "workspace/main.cpp"
        "workspace/report.cpp"
    ;
    "fake":
        "reopened/main.fake"
        "sample.yaml"
        "workspace/forms/circle.fake"
        "workspace/forms/square.fake"
        "workspace/main.fake"
        "workspace/report.fake"
        "workspace/shapes.fake"
    ;
    "python":
        "reopened/main.py"
        "sample.yaml"
        "workspace/geometry/__init__.py"
        "workspace/geometry/circle.py"
        "workspace/geometry/shape.py"
        "workspace/geometry/square.py"
        "workspace/main.py"
        "workspace/pyproject.toml"
        "workspace/report.py"
    ;
    "rust":
        "reopened/main.rs"
        "sample.yaml"
        "workspace/Cargo.lock"
        "workspace/Cargo.toml"
        "workspace/src/circle.rs"
        "workspace/src/main.rs"
        "workspace/src/report.rs"
        "workspace/src/shape.rs"
        "workspace/src/square.rs"
    ;
    "typescript":
        "reopened/main.ts"
        "sample.yaml"
        "workspace/src/circle.ts"
        "workspace/src/main.ts"
        "workspace/src/report.ts"
        "workspace/src/shape.ts"
        "workspace/src/square.ts"
        "workspace/tsconfig.json"
    ;
};
