//! Places in the pool: who gets one, within the limits of tenants and of the gateway.

use std::sync::Arc;

use super::{
    Account, Pool, PoolError,
    index::{Index, Place},
    slot::{Hold, Slot},
};

impl Pool {
    /// Holds the slot of a document, which is made if there is room for it.
    pub(super) async fn hold(&self, place: &Place, account: &Account) -> Result<Hold, PoolError> {
        let (hold, victim) = self.take_place(place, account)?;
        if let Some(slot) = victim {
            slot.close().await;
        }
        Ok(hold)
    }

    fn take_place(&self, place: &Place, account: &Account) -> Result<(Hold, Option<Arc<Slot>>), PoolError> {
        if let Some(slot) = self.index.read().get(place) {
            return Ok((Hold::new(slot, self.started.0), None));
        }
        let mut index = self.index.write();
        if let Some(slot) = index.get(place) {
            return Ok((Hold::new(slot, self.started.0), None));
        }
        let victim = self.make_room(&mut index, account)?;
        let slot = Arc::new(Slot::new(&account.tenant));
        let hold = Hold::new(&slot, self.started.0);
        index.insert(place.clone(), slot);
        Ok((hold, victim))
    }

    /// At a limit the least used idle room gives up its place; if all are in use the request is refused.
    fn make_room(&self, index: &mut Index, account: &Account) -> Result<Option<Arc<Slot>>, PoolError> {
        let of_tenant = |slot: &Slot| slot.tenant == account.tenant;
        let tenant_rooms = index.count_of(&account.tenant);
        let full = match (
            tenant_rooms >= account.max_open_rooms,
            index.len() >= self.limits.max_open_rooms,
        ) {
            (true, _) => PoolError::Full {
                limit: account.max_open_rooms,
                whose: "for your tenant",
            },
            (false, true) => PoolError::Full {
                limit: self.limits.max_open_rooms,
                whose: "in this gateway",
            },
            (false, false) => return Ok(None),
        };
        let only_tenant = tenant_rooms >= account.max_open_rooms;
        let longest_idle = index
            .iter()
            .filter(|(_, slot)| slot.is_idle() && (!only_tenant || of_tenant(slot)))
            .min_by_key(|(_, slot)| slot.last_used())
            .map(|(place, _)| place.clone());
        longest_idle.map(|place| index.take(&place)).ok_or(full)
    }

    /// Forgets a place where nothing could be opened, unless somebody else still tries.
    pub(super) fn give_up(&self, place: &Place, hold: Hold) {
        let slot = Arc::clone(&hold.slot);
        drop(hold);
        let mut index = self.index.write();
        if slot.room.get().is_none() && slot.is_idle() {
            index.remove(place, &slot);
        }
    }
}
