//! What messages carry along: a request context, which flows along calls, and a call's idempotency key.

use std::sync::Arc;

use bytes::BytesMut;
use greenroom_wire::carried::{PrincipalView, pairs, put_pairs};
use greenroom_wire::extension::tag;
use greenroom_wire::{Extension, ExtensionError, ExtensionView, ExtensionWriter};

use crate::cx::Cx;

/// What the calls of a [`Cx`] carry beside what its turn does.
#[derive(Clone, Default)]
pub(crate) struct Carried {
    context: Vec<(String, String)>,
    idempotency_key: Option<String>,
}

impl Carried {
    fn written(&self) -> Result<Extension, ExtensionError> {
        let mut writer = ExtensionWriter::new();
        if !self.context.is_empty() {
            let mut field = BytesMut::new();
            put_pairs(self.context.iter().map(|(key, value)| (&**key, &**value)), &mut field);
            writer.put(tag::CONTEXT, &field)?;
        }
        if let Some(key) = &self.idempotency_key {
            writer.put(tag::IDEMPOTENCY_KEY, key.as_bytes())?;
        }
        Ok(writer.finish())
    }
}

impl Cx {
    /// The pairs of the request context that came with the turn's message.
    pub fn context(&self) -> Vec<(&str, &str)> {
        self.came(tag::CONTEXT).and_then(|field| pairs(field).ok()).unwrap_or_default()
    }

    /// On whose behalf the turn is, if anybody's.
    pub fn principal(&self) -> Option<&str> {
        let field = self.came(tag::PRINCIPAL)?;
        Some(PrincipalView::parse(field).ok()?.name)
    }

    /// The same, whose messages carry `value` under `key` in their request context, and so do all calls that are made on their behalf.
    pub fn with(&self, key: &str, value: &str) -> Self {
        self.carrying(|carried| carried.context.push((key.to_owned(), value.to_owned())))
    }

    /// The same, for a call that has an idempotency key: among all calls of the reliable actor with this key it runs once, and the others
    /// get the answer that was recorded. An actor that is not reliable refuses it.
    pub fn idempotent(&self, key: &str) -> Self {
        self.carrying(|carried| carried.idempotency_key = Some(key.to_owned()))
    }

    /// # Errors
    /// [`ExtensionError`]: it is too much for one message.
    pub(crate) fn extension(&self) -> Result<Extension, ExtensionError> {
        self.carried.as_ref().map_or(Ok(Extension::EMPTY), |carried| carried.written())
    }

    fn carrying(&self, change: impl FnOnce(&mut Carried)) -> Self {
        let mut carried = self.carried.as_deref().cloned().unwrap_or_default();
        change(&mut carried);
        Self { carried: Some(Arc::new(carried)), ..self.clone() }
    }

    fn came(&self, tag: u64) -> Option<&[u8]> {
        ExtensionView::parse(&self.came).ok()?.find(tag)
    }
}
