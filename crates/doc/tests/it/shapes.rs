//! Shapes against the scan: goal: a path finds the same value with an index and without.

use frond_doc::path::Path;
use frond_doc::shape::{ShapePath, ShapeRegistry};
use frond_testkit::random::for_seeds;

use crate::generate;

#[test]
fn indexed_gets_equal_scans() {
    for_seeds(300, |mut random| {
        let mut registry = ShapeRegistry::new(20);
        let mut paths: Vec<(Path, ShapePath)> = ["a", "b", "a.b", "b.a", "a.a.b", "", "ß", "a.b."]
            .map(|dotted| (Path::new(dotted), ShapePath::new(Path::new(dotted))))
            .into();
        let mut indexed_count = 0;
        for _ in 0..60 {
            let document = generate::document(&mut random, 4);
            let index = registry.index(document.view());
            indexed_count += usize::from(index.is_some());
            for (path, shape_path) in &mut paths {
                let found = shape_path.get(&registry, document.view(), index.as_ref());
                let expected = path.get(document.view());
                // By their text, so that NaN equals itself.
                assert_eq!(
                    format!("{found:?}"),
                    format!("{expected:?}"),
                    "{path:?} of {document:?}"
                );
            }
        }
        assert!(registry.count() <= 20);
        assert!(0 < indexed_count);
    });
}
