//! What a turn of a reliable actor cannot do, as it would act before the turn is committed.

use syn::visit_mut::{self, VisitMut};
use syn::{
    Error, Expr, ExprMethodCall, FnArg, Ident, ImplItemFn, Item, Lit, Pat, Result, parse_quote, parse_quote_spanned,
};

use crate::actor_impl::Errors;
use crate::assertions::at;
use crate::{names, wire_type};

/// Refuses what can be told from the function's text, and lets the types decide about what it awaits. `states` are those
/// that it may jump to.
pub(crate) fn guard(function: &mut ImplItemFn, states: &[String]) -> Result<()> {
    // A hook is no part of a turn.
    if function.sig.receiver().is_none() || crate::hooks::is_hook(function) {
        return Ok(());
    }
    let cx = function.sig.inputs.iter().find_map(|input| match input {
        FnArg::Typed(typed) if wire_type::is_cx(&typed.ty) => match &*typed.pat {
            Pat::Ident(pattern) => Some(pattern.ident.clone()),
            _ => None,
        },
        _ => None,
    });
    let mut guard = Guard { cx, states, errors: Errors::default(), awaits: false };
    guard.visit_block_mut(&mut function.block);
    if guard.awaits {
        let trait_in_scope = parse_quote!(
            #[allow(unused_imports)]
            use ::greenroom::__private::Anything as _;
        );
        function.block.stmts.insert(0, trait_in_scope);
    }
    guard.errors.end()
}

struct Guard<'a> {
    /// What the function calls its surroundings.
    cx: Option<Ident>,
    states: &'a [String],
    errors: Errors,
    awaits: bool,
}

impl VisitMut for Guard<'_> {
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        visit_mut::visit_expr_mut(self, expression);
        match expression {
            Expr::Await(awaited) => {
                self.awaits = true;
                let (base, span) = (&*awaited.base, at(awaited.await_token.span));
                *awaited.base = parse_quote_spanned!(span=> ::greenroom::__private::Awaited(#base).before_commit());
            }
            Expr::MethodCall(call) if self.is_cx(&call.receiver) => _ = self.errors.keep(self.check(call)),
            Expr::Call(call) => {
                if let Expr::Path(path) = &*call.func {
                    let path: Vec<String> = path.path.segments.iter().map(|part| part.ident.to_string()).collect();
                    let spawns = path.last().is_some_and(|last| last == "spawn" || last == "spawn_local");
                    let task = path.iter().rev().nth(1).is_some_and(|of| of == "tokio" || of == "task");
                    if spawns && task {
                        let message = "a task goes on whatever becomes of the turn, so it would act before the turn is \
                                       committed; write `.send()` to an actor that does its work";
                        self.errors.keep::<()>(Err(Error::new_spanned(&call.func, message)));
                    }
                }
            }
            _ => {}
        }
    }

    /// Items within a function are not part of it.
    fn visit_item_mut(&mut self, _: &mut Item) {}
}

impl Guard<'_> {
    fn is_cx(&self, receiver: &Expr) -> bool {
        let is =
            |expression: &Expr| matches!(expression, Expr::Path(path) if path.path.get_ident() == self.cx.as_ref());
        self.cx.is_some() && is(receiver)
    }

    fn check(&self, call: &ExprMethodCall) -> Result<()> {
        let method = call.method.to_string();
        let cx = self.cx.as_ref().map(ToString::to_string).unwrap_or_default();
        let message = match method.as_str() {
            "jump" => return self.check_jump(call),
            "spawn" | "spawn_with" | "spawn_on" => format!(
                "a turn of a reliable actor spawns nothing, as that would act before its commit; write `Kind::create({cx})`, or \
                 send a message to an actor that spawns"
            ),
            "after" | "every" => "what a reliable actor does later is part of its turn's commit: write \
                                  `call.after(delay).send()`; for what comes again, let the turn that it begins send the next one"
                .to_owned(),
            "watch" => "a reliable actor watches nobody: its children are reliable too, and tell it with `.send()`".to_owned(),
            "reminders" => "a turn of a reliable actor has no reminders but timers: write `call.after(delay).send()`, and let the \
                            actor's state say that one is not wanted any more"
                .to_owned(),
            "migrate_to" => "the journal's partitions say where reliable actors are; leave it out".to_owned(),
            "save" | "reload" | "clear" => {
                format!("the turn's commit saves what has changed: leave `{cx}.{method}` out; `{cx}.halt()` removes all of it")
            }
            _ => return Ok(()),
        };
        Err(Error::new_spanned(&call.method, message))
    }

    fn check_jump(&self, call: &ExprMethodCall) -> Result<()> {
        let Some(Expr::Lit(literal)) = call.args.first() else { return Ok(()) };
        let Lit::Str(state) = &literal.lit else { return Ok(()) };
        let known: Vec<&str> = self.states.iter().map(String::as_str).collect();
        if known.contains(&state.value().as_str()) {
            return Ok(());
        }
        let remedy = match (names::nearest(&state.value(), &known), known.is_empty()) {
            (Some(near), _) => format!("did you mean {near:?}?"),
            (None, true) => "the actor is no state machine: write `#[actor(reliable, start = \"..\")]`".to_owned(),
            (None, false) => format!("the states are {}", known.join(", ")),
        };
        Err(Error::new_spanned(state, format!("nothing is handled in the state {:?}; {remedy}", state.value())))
    }
}
