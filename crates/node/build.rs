//! Has the linker leave Node's functions open, where it has to be told (macOS).

fn main() {
    napi_build::setup();
}
