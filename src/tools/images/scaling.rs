//! Scaling of images: few at a time, to bound memory and threads, and never one tenant before all
//! others. Images that need no scaling do not wait.

use std::{
    collections::HashMap,
    num::NonZero,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    thread::available_parallelism,
};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};
use tokio_util::task::AbortOnDropHandle;

use super::{Fitted, ImageLimits, LeftOut, Shortcut, fit, shortcut};
use crate::{
    limits::{Limits, Reservation, Resource},
    tools::{Client, ToolError},
};

/// A decoded image may take hundreds of megabytes, however many processors there are.
const MAX_AT_ONCE: usize = 4;

/// The places at which images are scaled. A tenant never has all of them, and waits for those with at most as many
/// images as it may have there, so that the others wait for few.
pub struct Scaling {
    places: Arc<Semaphore>,
    per_tenant: usize,
    tenants: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
    /// None where nobody shares it.
    limits: Option<Arc<Limits>>,
}

/// A place, until it is dropped.
struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_tenant: OwnedSemaphorePermit,
}

impl Default for Scaling {
    fn default() -> Self {
        Self::new(available_parallelism().map_or(2, NonZero::get).clamp(2, MAX_AT_ONCE))
    }
}

impl Scaling {
    fn new(places: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(places)),
            per_tenant: places - 1,
            tenants: Mutex::default(),
            limits: None,
        }
    }

    /// With limits on the images of a tenant that are scaled or wait for it.
    pub fn within(limits: Arc<Limits>) -> Self {
        Self {
            limits: Some(limits),
            ..Self::default()
        }
    }

    /// A place in the queue of a tenant, whose memory the images take meanwhile.
    fn enter(&self, tenant: &str) -> Result<Option<Reservation>, LeftOut> {
        let held = self
            .limits
            .as_ref()
            .map(|limits| limits.hold(tenant, Resource::Images, 1));
        held.transpose()
            .map_err(|refusal| LeftOut::Limited(refusal.to_string()))
    }

    async fn place(&self, tenant: &Arc<str>) -> Result<Place, ToolError> {
        let own = self.of_tenant(tenant).acquire_owned().await;
        let all = Arc::clone(&self.places).acquire_owned().await;
        Ok(Place {
            _of_tenant: own.map_err(|_| ToolError::Stopping)?,
            _of_all: all.map_err(|_| ToolError::Stopping)?,
        })
    }

    /// A tenant's own places, which are forgotten when it neither has nor wants one.
    fn of_tenant(&self, tenant: &Arc<str>) -> Arc<Semaphore> {
        let mut tenants = self.tenants.lock();
        if let Some(known) = tenants.get(tenant).and_then(Weak::upgrade) {
            return known;
        }
        tenants.retain(|_, places| places.strong_count() > 0);
        let new = Arc::new(Semaphore::new(self.per_tenant));
        tenants.insert(Arc::clone(tenant), Arc::downgrade(&new));
        new
    }
}

/// Places for images in one answer.
pub(in crate::tools) struct ImagePlaces {
    max: usize,
    left: AtomicUsize,
}

impl From<usize> for ImagePlaces {
    fn from(max: usize) -> Self {
        Self {
            max,
            left: AtomicUsize::new(max),
        }
    }
}

impl ImagePlaces {
    fn take(&self) -> Result<(), LeftOut> {
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        taken.map(drop).map_err(|_| LeftOut::TooMany(self.max))
    }
}

/// Maker of the images in an answer to one caller.
pub(in crate::tools) struct Illustrator {
    pub(in crate::tools) limits: ImageLimits,
    /// True if the caller wants images at all.
    pub(in crate::tools) wanted: bool,
    /// Number of images that the answer may still get.
    pub(in crate::tools) places: ImagePlaces,
    pub(in crate::tools) scaling: Arc<Scaling>,
    pub(in crate::tools) tenant: Arc<str>,
    pub(in crate::tools) client: Arc<dyn Client>,
}

impl Illustrator {
    /// An image as the limits want it. Nothing is begun for a caller who has gone.
    pub(in crate::tools) async fn fit(&self, base64: String) -> Result<Result<Fitted, LeftOut>, ToolError> {
        if !self.wanted {
            return Ok(Err(LeftOut::Unwanted));
        }
        if let Err(left_out) = self.places.take() {
            return Ok(Err(left_out));
        }
        match shortcut(base64, &self.limits) {
            Shortcut::Settled(fitted) => Ok(fitted),
            Shortcut::MustScale(base64) => tokio::select! {
                scaled = self.scale(base64) => scaled,
                () = self.client.cancelled() => Err(ToolError::Stopping),
            },
        }
    }

    async fn scale(&self, base64: String) -> Result<Result<Fitted, LeftOut>, ToolError> {
        let held = match self.scaling.enter(&self.tenant) {
            Ok(held) => held,
            Err(left_out) => return Ok(Err(left_out)),
        };
        let place = self.scaling.place(&self.tenant).await?;
        let limits = self.limits;
        let work = spawn_blocking(move || {
            // Kept until the work is done, also if nobody waits for it any more: it takes as much memory as before.
            let _place = (place, held);
            fit(&base64, &limits)
        });
        AbortOnDropHandle::new(work).await.map_err(|_| ToolError::Stopping)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::{config::TenantConfig, telemetry::Metrics};

    #[test]
    fn a_tenant_has_only_so_many_images_waiting() {
        let tenant = |name: &str| TenantConfig {
            name: name.to_owned(),
            max_images_in_work: 2,
            ..TenantConfig::default()
        };
        let metrics = Metrics::new("test", None).expect("metrics");
        let scaling = Scaling::within(Limits::new(&[tenant("many"), tenant("other")], metrics));
        let held = (scaling.enter("many"), scaling.enter("many"));
        assert!(held.0.is_ok() && held.1.is_ok());
        let left_out = scaling.enter("many").err().expect("left out").to_string();
        assert!(
            left_out.contains("2 images of your tenant") && left_out.contains("max_images_in_work"),
            "{left_out}"
        );
        assert!(scaling.enter("other").is_ok());
        drop(held);
        assert!(scaling.enter("many").is_ok());
    }

    #[test]
    fn no_tenant_takes_all_places_and_those_of_who_left_are_free() {
        let scaling = Scaling::new(2);
        let (many, other): (Arc<str>, Arc<str>) = ("many".into(), "other".into());
        let place = |tenant| scaling.place(tenant).now_or_never().and_then(Result::ok);
        let first = place(&many);
        assert!(
            first.is_some() && place(&many).is_none(),
            "one tenant has one of two places"
        );
        let others = place(&other);
        assert!(others.is_some());
        drop(first);
        let next = place(&many);
        assert!(next.is_some(), "who stopped waiting keeps no place");
        drop((others, next));
        assert!(place(&other).is_some());
        let mut left = scaling.tenants.lock();
        left.retain(|_, places| places.strong_count() > 0);
        assert!(left.is_empty());
    }
}
