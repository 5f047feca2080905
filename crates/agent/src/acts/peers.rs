//! Which instances may replicate from here (section 14). The list was fsynced
//! before this is called; here it is made true on the running server.

use super::{ActError, Hands};
use crate::{lock, sql::accounts};

/// Makes the accounts agree with the persisted list, if they do not.
pub(crate) async fn apply(hands: &mut Hands<'_>) -> Result<(), ActError> {
    let record = hands.agent.record().ok_or_else(ActError::volume_not_ours)?;
    if lock(&hands.running.facts).peers.as_ref() == Some(&record.peers) {
        return Ok(());
    }
    let accounts = hands.agent.accounts(&record.peers);
    let server = hands.observe().await?;
    let variable = hands
        .session
        .rows("SELECT @@global.super_read_only AS fenced")
        .await?;
    let fenced = variable
        .first()
        .and_then(|row| crate::sql::session::text(row, "fenced"));
    if fenced.as_deref() == Some("0") {
        accounts::keep_only(&mut hands.session, &accounts).await?;
    } else {
        through_window(hands, server.offline, &accounts).await?;
    }
    lock(&hands.running.facts).peers = Some(record.peers);
    Ok(())
}

/// super_read_only refuses account statements, from everybody. It is lifted
/// while read_only and offline_mode keep every client out.
async fn through_window(
    hands: &mut Hands<'_>,
    offline: bool,
    accounts: &[accounts::Account],
) -> Result<(), ActError> {
    if !offline {
        hands.session.run("SET GLOBAL offline_mode=ON").await?;
    }
    let opened = async {
        hands.session.run("SET GLOBAL read_only=ON").await?;
        hands.session.run("SET GLOBAL super_read_only=OFF").await?;
        accounts::keep_only(&mut hands.session, accounts).await
    };
    let done = opened.await;
    let shut = hands.session.run("SET GLOBAL super_read_only=ON").await;
    if let Err(error) = shut {
        // Not to be left half open: a boot is read-only again.
        tracing::error!(%error, "super_read_only did not come back: SIGKILL");
        hands.running.child.kill().await;
        return Err(ActError::Sql(error));
    }
    if !offline {
        hands.session.run("SET GLOBAL offline_mode=OFF").await?;
    }
    Ok(done?)
}
