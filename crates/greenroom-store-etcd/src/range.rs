//! Walking over a range of keys in pieces of a bounded size: etcd bounds its answers by their count alone.

use std::time::Instant;

use bytes::Bytes;
use greenroom_store::Result;
use greenroom_store::scan::LIMIT_MAX;

use crate::connection::Effect;
use crate::proto::{KeyValue, RANGE, RangeRequest, RangeResponse};
use crate::{ANSWER_BYTES_MAX, Inner};

impl Inner {
    /// Shows `take` what is in etcd from `from` to before `end`, in byte order, until there is no more or it answers
    /// false. About `wanted` will be taken.
    pub(crate) async fn walk(
        &self,
        mut from: Bytes,
        end: Bytes,
        subject: &str,
        by: Instant,
        wanted: usize,
        mut take: impl FnMut(KeyValue) -> bool,
    ) -> Result<()> {
        // One more than wanted tells whether there is more.
        let most = wanted.clamp(1, LIMIT_MAX) + 1;
        let mut count = most.min(COUNT_FIRST);
        loop {
            let limit = i64::try_from(count).expect("it is small");
            let range = RangeRequest { key: from.clone(), range_end: end.clone(), limit, keys_only: false };
            let bytes_max = if count == 1 { ANSWER_BYTES_MAX } else { PIECE_BYTES_MAX };
            let answer: RangeResponse = match self.connection.ask(RANGE, range, Effect::Reads, bytes_max, by).await {
                Ok(answer) => answer,
                Err(failure) if failure.is_long_answer() && count > 1 => {
                    count = (count / 4).max(1);
                    continue;
                }
                Err(failure) => return Err(self.read_error(failure, subject)),
            };
            let bytes: usize = answer.kvs.iter().map(|found| found.value.len()).sum();
            for found in answer.kvs {
                from = [&found.key[..], &[0]].concat().into();
                if !take(found) {
                    return Ok(());
                }
            }
            if !answer.more {
                return Ok(());
            }
            if bytes * 4 <= PIECE_BYTES_MAX / 2 {
                count = (count * 4).min(most);
            }
        }
    }
}

/// Keys in the first piece: small values fill a page in three, and large ones are not sent in vain.
const COUNT_FIRST: usize = 64;

/// Largest answer that is taken, unless it is a single key.
const PIECE_BYTES_MAX: usize = 8 << 20;
