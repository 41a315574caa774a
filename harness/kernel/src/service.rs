//! Services by type: the keys under which plugins find one another.

use std::any::{Any, TypeId};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The key of a service: its type, usually a trait object such as `dyn FileSystem`.
#[derive(Clone, Copy)]
pub struct ServiceKey {
    id: TypeId,
    name: &'static str,
}

impl ServiceKey {
    /// The key of the service type `S`.
    pub fn of<S: ?Sized + 'static>() -> Self {
        Self {
            id: TypeId::of::<S>(),
            name: std::any::type_name::<S>(),
        }
    }

    /// The type's name, for people.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl PartialEq for ServiceKey {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for ServiceKey {}

impl PartialOrd for ServiceKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ServiceKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.id.cmp(&other.id)
    }
}

impl Hash for ServiceKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// An `Arc<S>` whose type was erased.
#[derive(Clone)]
pub(crate) struct AnyService(Arc<dyn Any + Send + Sync>);

impl AnyService {
    pub(crate) fn new<S: ?Sized + Send + Sync + 'static>(service: Arc<S>) -> Self {
        // `S` may be unsized, so the `Arc` itself is what is erased.
        Self(Arc::new(service))
    }

    pub(crate) fn downcast<S: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<S>> {
        self.0.downcast_ref::<Arc<S>>().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    trait Greeter: Send + Sync {
        fn greet(&self) -> &'static str;
    }

    struct Hello;

    impl Greeter for Hello {
        fn greet(&self) -> &'static str {
            "hello"
        }
    }

    /// RUN-1.
    #[test]
    fn a_service_is_found_by_its_trait_and_by_nothing_else() {
        let service = AnyService::new::<dyn Greeter>(Arc::new(Hello));
        assert_eq!(service.downcast::<dyn Greeter>().unwrap().greet(), "hello");
        assert!(service.downcast::<Hello>().is_none());
        assert_ne!(ServiceKey::of::<dyn Greeter>(), ServiceKey::of::<Hello>());
        assert!(ServiceKey::of::<dyn Greeter>().name().contains("Greeter"));
    }
}
