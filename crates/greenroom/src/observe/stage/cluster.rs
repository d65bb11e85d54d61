//! The stage of a cluster, by way of one of its nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_protocols::node::NodeId;
use serde_json::Value;

use super::StageWord;
use super::cast::Cast;
use super::told::told;
use super::word::HotWord;
use crate::here::Here;
use crate::observe::look::{self, Whom};
use crate::observe::question::Question;

/// Who is on the stage of the nodes that are asked, with at most `top` actors by their names.
pub(crate) async fn stage(here: &Arc<Here>, top: usize, whom: &Whom) -> Value {
    let heard = look::ask::<StageWord>(here, &Question::Stage { top: top as u32 }, whom).await;
    let view = here.view();
    let named = heard.said.iter().filter_map(|(id, word)| Some((*id, (&*view.member(*id)?.name, word))));
    let (ids, said): (Vec<NodeId>, Vec<(&str, &StageWord)>) = named.unzip();
    let cast = Cast::of(&said, top);
    let seats = seats(here, cast.nameless(), whom).await;
    let seats: Vec<&[HotWord]> = ids.iter().map(|id| seats.get(id).map_or(&[][..], Vec::as_slice)).collect();
    heard.with_silent(told(here.wall().0, &here.config().cluster, &said, &cast, &seats))
}

/// Where the actors with these hashes are. Who does not answer in time has told what it could.
async fn seats(here: &Arc<Here>, actors: Vec<u64>, whom: &Whom) -> BTreeMap<NodeId, Vec<HotWord>> {
    if actors.is_empty() {
        return BTreeMap::new();
    }
    look::ask::<Vec<HotWord>>(here, &Question::Seats { actors }, whom).await.said
}
