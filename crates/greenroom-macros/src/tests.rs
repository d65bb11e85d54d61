//! What is written, as far as it can be read without the runtime.

use quote::quote;
use syn::{File, Item, ItemImpl, ItemTrait, Result};

use crate::{actor_impl, actor_trait, trait_impl};

fn items(tokens: proc_macro2::TokenStream) -> Result<Vec<Item>> {
    Ok(syn::parse2::<File>(tokens)?.items)
}

fn room() -> Result<ItemImpl> {
    syn::parse2(quote! {
        impl ChatRoom {
            pub async fn post(&mut self, cx: &Cx, user: String, #[serde(default)] limit: Option<u32>) -> Result<bool, E> {}
            pub async fn read(&self) -> Vec<String> {}
            pub fn fresh() -> Self {}
            async fn inner(&self) {}
            async fn activated(&mut self) {}
        }
    })
}

fn names(items: &[Item]) -> Vec<String> {
    let name = |item: &Item| match item {
        Item::Struct(item) => Some(item.ident.to_string()),
        Item::Enum(item) => Some(item.ident.to_string()),
        _ => None,
    };
    items.iter().filter_map(name).collect()
}

#[test]
fn only_public_async_methods_are_called_by_messages() -> Result<()> {
    let items = items(actor_impl::expand(quote!(), room()?))?;
    let written =
        ["ChatRoomPostArguments", "ChatRoomReadArguments", "ChatRoomMessage", "ChatRoomInterface", "ChatRoomRef"];
    assert_eq!(names(&items), written);
    Ok(())
}

#[test]
fn fields_are_named_as_arguments_and_keep_their_serde_attributes() -> Result<()> {
    let items = items(actor_impl::expand(quote!(), room()?))?;
    let fields = items.iter().find_map(|item| match item {
        Item::Struct(item) if item.ident == "ChatRoomPostArguments" => Some(&item.fields),
        _ => None,
    });
    let fields: Vec<_> = fields.into_iter().flatten().collect();
    let name = |at: usize| fields[at].ident.as_ref().map(ToString::to_string).unwrap_or_default();
    assert_eq!((name(0), name(1)), ("user".to_owned(), "limit".to_owned()));
    assert_eq!((fields[0].attrs.len(), fields[1].attrs.len()), (0, 1));
    Ok(())
}

#[test]
fn the_block_stays_as_it_is_without_what_only_the_macro_understands() -> Result<()> {
    let items = items(actor_impl::expand(quote!(), room()?))?;
    let block = items.first().map(|item| quote!(#item).to_string()).unwrap_or_default();
    assert!(block.contains("fn inner") && block.contains("fn activated"), "{block}");
    assert!(!block.contains("serde"), "{block}");
    Ok(())
}

#[test]
fn a_kind_is_the_name_in_snake_case_unless_it_is_said() -> Result<()> {
    let by_name = actor_impl::expand(quote!(), room()?).to_string();
    assert!(by_name.contains("KIND : & 'static str = \"chat_room\""), "{by_name}");
    let said = actor_impl::expand(quote!(kind = "room"), room()?).to_string();
    assert!(said.contains("KIND : & 'static str = \"room\""), "{said}");
    let api: ItemTrait = syn::parse2(quote!(
        pub trait ChatRoomApi {
            async fn read(&self) -> u64;
        }
    ))?;
    let api = actor_trait::expand(quote!(), api).to_string();
    assert!(api.contains("KIND : & 'static str = \"chat_room\""), "{api}");
    Ok(())
}

#[test]
fn hooks_move_out_of_the_implementation_of_a_trait() -> Result<()> {
    let block = syn::parse2(quote! {
        impl ChatRoomApi for ChatRoom {
            async fn activated(&mut self) {}
            async fn read(&self) -> u64 { 0 }
        }
    })?;
    let items = items(trait_impl::expand(quote!(), block))?;
    let sizes: Vec<usize> =
        items.iter().map(|item| if let Item::Impl(item) = item { item.items.len() } else { 0 }).collect();
    // The trait's method; the hook; and `Behaviour`: one type, five constants, three functions, and what explorers are shown.
    assert_eq!(sizes, [1, 1, 10]);
    Ok(())
}

#[test]
fn an_update_takes_a_shared_actor_and_is_nothing_to_the_compiler() -> Result<()> {
    let shared = syn::parse2(quote!(
        impl Counter {
            #[update]
            pub async fn add(&self, n: i64) {}
        }
    ))?;
    let written = actor_impl::expand(quote!(), shared).to_string();
    assert!(!written.contains("# [update]") && !written.contains("compile_error"), "{written}");
    let exclusive = syn::parse2(quote!(
        impl Counter {
            #[update]
            pub async fn add(&mut self, n: i64) {}
        }
    ))?;
    let written = actor_impl::expand(quote!(), exclusive).to_string();
    assert!(written.contains("take `&self`"), "{written}");
    Ok(())
}

#[test]
fn a_message_of_a_state_machine_is_named_by_its_handlers_and_not_by_their_names() -> Result<()> {
    let block = syn::parse2(quote! {
        impl Door {
            #[on(pass, state = ["Open", "Ajar"], defer = "Shut")]
            async fn let_pass(&mut self) {}
            #[on(pass, state = "Broken")]
            async fn let_all_pass(&mut self) {}
        }
    })?;
    let items = items(actor_impl::expand(quote!(reliable, start = "Shut"), block))?;
    assert!(names(&items).contains(&"DoorPassArguments".to_owned()));
    Ok(())
}

#[test]
fn what_a_turn_of_a_reliable_actor_awaits_is_looked_at_by_type() -> Result<()> {
    let block = quote! { impl Door { pub async fn open(&mut self, cx: &Cx) { other(cx).await } } };
    let reliable = actor_impl::expand(quote!(reliable), syn::parse2(block.clone())?).to_string();
    let plain = actor_impl::expand(quote!(), syn::parse2(block)?).to_string();
    assert!(reliable.contains("before_commit ()") && !plain.contains("before_commit"));
    Ok(())
}

#[test]
fn a_reliable_kind_may_declare_one_actor_per_cluster_and_nothing_else_of_clusters() -> Result<()> {
    let written = |options| -> Result<String> {
        let block = syn::parse2(quote! { impl Door { pub async fn open(&mut self) {} } })?;
        Ok(actor_impl::expand(options, block).to_string())
    };
    let declared = written(quote!(reliable, instances = "per_cluster"))?;
    assert!(declared.contains("Instances :: PerCluster") && !declared.contains("compile_error"), "{declared}");
    for options in [quote!(reliable, instances = "single"), quote!(reliable, instances = "adaptive")] {
        assert!(written(options)?.contains("each cluster has reliable actors of its own"));
    }
    assert!(written(quote!(reliable, home = "lease"))?.contains("does not go with `reliable`"));
    Ok(())
}

#[test]
fn a_method_that_blocks_has_the_actor_to_itself_and_no_context() -> Result<()> {
    let written = |block| -> Result<String> {
        Ok(actor_impl::expand(quote!(), syn::parse2(quote!(impl Album { #[blocking] #block }))?).to_string())
    };
    let good = written(quote!(
        pub fn scale(&mut self, by: u32) -> Result<u64, E> {}
    ))?;
    assert!(
        good.contains("on_a_thread") && !good.contains("# [blocking]") && !good.contains("compile_error"),
        "{good}"
    );
    for (bad, said) in [
        (
            quote!(
                pub async fn scale(&mut self) {}
            ),
            "remove `async`",
        ),
        (
            quote!(
                pub fn scale(&self) {}
            ),
            "take `&mut self`",
        ),
        (
            quote!(
                pub fn scale(&mut self, cx: &Cx) {}
            ),
            "has no context",
        ),
        (
            quote!(
                fn scale(&mut self) {}
            ),
            "only what a message calls",
        ),
        (
            quote!(
                pub fn scale() {}
            ),
            "only what a message calls",
        ),
    ] {
        let written = written(bad)?;
        assert!(written.contains(said), "{said}: {written}");
    }
    let api = syn::parse2(quote!(
        pub trait AlbumApi {
            #[blocking]
            fn scale(&mut self);
        }
    ))?;
    assert!(actor_trait::expand(quote!(), api).to_string().contains("a trait does not say"));
    Ok(())
}
