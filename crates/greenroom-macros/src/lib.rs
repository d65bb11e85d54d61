//! The macros of Greenroom: `#[actor]` writes an actor's messages, its reference and its dispatch; `#[derive(Actor)]`
//! makes actors by their type's default. Use them through the crate `greenroom`.

use proc_macro::TokenStream;
use quote::ToTokens;
use syn::{DeriveInput, Item, ItemFn, parse_macro_input};

mod actor_impl;
mod actor_trait;
mod assertions;
mod before_commit;
mod behaviour;
mod by_hand;
mod derive;
mod explore;
mod hooks;
mod interface;
mod machine;
mod method;
mod names;
mod one_block;
mod options;
mod reference;
mod signature;
mod stream_type;
#[cfg(test)]
mod tests;
mod trait_impl;
mod travel;
mod wire_type;

/// Makes the methods of an `impl` block or of a trait callable through a reference, from any node.
///
/// Above `impl ChatRoom`, each `pub async fn` with `&mut self` is an exclusive turn and each with `&self` a read; both may
/// take `cx: &Cx` first. All other functions stay what they are. It writes `ChatRoomRef`, with one method for each of them
/// that returns a call. Functions that are not `pub` and have these names are hooks: `async fn activated(&mut self, cx: &Cx)`, which may
/// return a `Result<(), impl Display>`, runs before the first turn, and `async fn deactivating(&mut self, cx: &Cx, why:
/// Why)` after the last one. A third, `async fn ended(&mut self, cx: &Cx, ended: Ended)`, hears of each actor that this one
/// watches and that has ended. Their arguments may be left out from the end.
///
/// Above `trait ChatRoomApi`, it writes `ChatRoomApiRef` from the trait's `async fn`s, for callers that do not link the
/// implementation; above `impl ChatRoomApi for ChatRoom`, it makes `ChatRoom` the actor that answers. That block may
/// contain the hooks, and needs `ChatRoomApiInterface` beside `ChatRoomApi` in scope.
///
/// A method may return `impl Stream<Item = T>`, or a `Result` of one, and need not be `async` then: callers get a
/// `ReplyStream<T>`. The stream runs beside turns, so it owns what it holds: `Send + 'static + use<>` is added to its type.
///
/// # Options
/// All may be left out: `#[actor(kind = "room", placement = "hash", idle = "5m", workers = 8, mailbox = 1024)]`.
///
/// - `kind`: the name on the wire; the type's name in snake case, without a trait's trailing `Api`.
/// - `placement`: `"balanced"` (the default), `"local"`, `"random"`, `"hash"`, `"role:NAME"`, or the name of a placement of
///   the node's.
/// - `idle`: how long an activation waits for a message before it ends: a number and `ms`, `s`, `m`, `h` or `d`. The
///   node's default.
/// - `workers`: stateless workers, at most so many activations a node and key. Ordinary, single actors.
/// - `mailbox`: how many messages may wait at one activation. The node's default.
/// - `in_flight`: how many messages of the kind may wait and run at once on one node. No bound.
/// - `home`: in a multi-cluster, `"lease"`, in the cluster that each actor's key chooses, or `"lease:NAME"`: it activates them there
///   without a question.
/// - `instances`: in a multi-cluster, `"single"` (the default), one in one of the clusters, `"per_cluster"`, one in each, or
///   `"adaptive"`, as many as cost least by how the actor is used, for actors with versioned states in a store. Of reliable actors
///   each cluster has its own: there `"per_cluster"` is declared, here or in the node's configuration.
/// - `activation`: of a single instance, `"optimistic"` (the default), also while a cluster is silent, or `"pessimistic"`.
/// - `persistent`: the actor as a whole is a state in a store, loaded when it activates.
/// - `save`: when states are saved: `"explicit"` (the default), when the actor says so; `"turn"`, after each turn that has
///   changed something; or so long after a change, such as `"5s"`.
/// - `store`: the name of the node's store that states are kept in. The one without a name.
/// - `version`: of a `persistent` actor's type, from 1, which is the default; the hook `fn migrate(old: Old<'_>) -> Result<Self, _>` reads
///   earlier ones.
/// - `writes`: the earlier version that the hook `fn write_older(&self, older: Older) -> Result<Written, _>` writes, while nodes are
///   there that read no later one.
/// - `protocol`: how instances of versioned states agree: `"bcas"`, `"vlb"`, `"log"`, or a protocol of the node's. What the node
///   says, or `"bcas"`.
/// - `leader`: the cluster whose instances lead, if the protocol has leaders. One that the key chooses.
/// - `migrate`: all fields go along, by serde, when an activation goes to another node. The hooks `migrating` and `migrated` carry
///   what is not serde. Nothing goes along, and actors that are not `persistent` stay.
/// - `pinned`, `optimise`: the optimiser moves none of its actors, or moves them although they are placed by something of their own. Those
///   that travel are moved if they are placed `"balanced"`, `"local"`, `"random"` or by a role, and have no home. A node's
///   configuration has the last word.
/// - `interface`: the version of the methods, from 1, which is the default.
/// - `compatible`: the oldest version of the interface whose callers are served. 1.
/// - `invariant`: what must hold after each turn, a `fn(&self) -> Result<(), String>` such as `"Self::sound"`. It is asked where the actor
///   is explored, by `greenroom-explore`, and costs nothing elsewhere.
/// - `reliable`, `start`: see below.
///
/// # Methods that block
/// `#[blocking]` above a `pub fn` with `&mut self`, which is not `async`: the actor goes to a thread of the node's pool for what blocks, and comes
/// back when the method has ended. A turn as any other: exclusive, refused if it cannot begin before its deadline. The actor's type is
/// `Default`, as a fresh one stands in for it meanwhile. What `cx` is needed for awaits `cx.blocking` in an `async fn`.
///
/// # Reliable actors
/// `#[actor(reliable)]`: each turn's changes and messages are one write to the node's journal. Within the block, awaiting
/// what would act before that write does not compile. With `start = "Init"` the actor is a state machine: `#[on(word, state =
/// "Counting")]` above an `async fn` lets it handle the message `word` in the state `Counting`; `state`, `defer` and `ignore`
/// take one state or several in brackets, and without `state` the function handles the message wherever nothing else is
/// said. Messages that are deferred wait until the actor has jumped: `cx.jump("Counting")`.
///
/// # Arguments
/// Arguments, replies and errors are plain serde data. An argument may carry `#[serde(default)]` and the like. In the
/// methods of the reference, a `String` is an `impl Into<String>` and a `Key` an `impl Into<Key>`.
#[proc_macro_attribute]
pub fn actor(options: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as Item);
    let expanded = match item {
        Item::Impl(item) if item.trait_.is_some() => trait_impl::expand(options.into(), item),
        Item::Impl(item) => actor_impl::expand(options.into(), item),
        Item::Trait(item) => actor_trait::expand(options.into(), item),
        other => {
            let error = syn::Error::new_spanned(
                &other,
                "`#[actor]` belongs above an `impl` block or a trait; above a struct, write `#[derive(Default, Actor)]`",
            )
            .into_compile_error();
            quote::quote!(#error #other)
        }
    };
    expanded.into_token_stream().into()
}

/// Makes the type an actor whose fresh instances are its `Default`.
///
/// Of a reliable actor, fields marked `#[volatile]` are not kept.
#[proc_macro_derive(Actor, attributes(volatile))]
pub fn derive_actor(item: TokenStream) -> TokenStream {
    derive::expand(&parse_macro_input!(item as DeriveInput)).into()
}

/// Makes a test of an `async fn` that takes a `World`, run under thousands of schedules: use it through the crate `greenroom-explore`.
///
/// In the brackets stand the kinds that the test needs, or `with = ` a function that registers them, and options, which are
/// methods of `greenroom_explore::Explore`: `#[explore(Teller, Account, schedules = 5_000)]`.
#[proc_macro_attribute]
pub fn explore(asked: TokenStream, function: TokenStream) -> TokenStream {
    let function = parse_macro_input!(function as ItemFn);
    explore::expand(asked.into(), function).into()
}
