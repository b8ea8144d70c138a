//! `procession demo`: which story is told.

mod tablets;

use clap::{Args, Subcommand};

use crate::demo::DemoError;
use crate::demo::shop::command::{self as shop, ShopArgs};
use crate::demo::trouble;
use tablets::TabletsArgs;

/// Arguments of the demo. Without the name of a story they are those of the shop.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DemoArgs {
    #[command(subcommand)]
    story: Option<Named>,
    #[command(flatten)]
    shop: ShopArgs,
}

#[derive(Debug, Clone, Subcommand)]
enum Named {
    /// Orders, stock, payments and shipping, kills welcome; at the end the books are checked. This is what is told
    /// without a name.
    Shop(ShopArgs),
    /// A tablet master over servers that are directories, kills welcome; at the end it is verified that no row was lost.
    Tablets(TabletsArgs),
}

/// Carries out the command.
///
/// # Errors
///
/// [`DemoError`], whose text says what to do; also if the verification failed.
pub(crate) async fn run(args: DemoArgs) -> Result<(), DemoError> {
    match args.story {
        Some(Named::Tablets(args)) => tablets::run(args).await,
        Some(Named::Shop(args)) => tell(args).await,
        None => tell(args.shop).await,
    }
}

async fn tell(args: ShopArgs) -> Result<(), DemoError> {
    if args.trouble {
        trouble::run(args.data.as_deref(), args.earlier_life, args.watch.view()).await
    } else {
        shop::run(args).await
    }
}
