//! The stage of a cluster, by way of one of its nodes.

use std::sync::Arc;

use serde_json::Value;

use super::{StageWord, told};
use crate::here::Here;
use crate::observe::look::{self, Whom};
use crate::observe::question::Question;

/// Who is on the stage of the nodes that are asked, with at most `top` hot actors.
pub(crate) async fn stage(here: &Arc<Here>, top: usize, whom: &Whom) -> Value {
    let heard = look::ask::<StageWord>(here, &Question::Stage { top: top as u32 }, whom).await;
    let view = here.view();
    let named = heard.said.iter().filter_map(|(id, word)| Some((&*view.member(*id)?.name, word)));
    let told = told(here.wall().0, &here.config().cluster, &named.collect::<Vec<_>>(), top);
    heard.with_silent(told)
}
