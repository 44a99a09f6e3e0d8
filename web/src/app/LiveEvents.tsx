import { Notifications, notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, type JSX, type ReactNode } from "react";
import { decodeMemo, NO_MEMO, type AccountEvent, type AccountId } from "@fastpay/sdk";

import { useKnownAssets } from "../data/assets";
import { readAccount, refreshAccount } from "../data/queries";
import { useNetwork } from "../network/NetworkProvider";
import { Money } from "../ui/Money";
import { shortAccount } from "../ui/words";

/** The delay before a failed watch is restarted. Meanwhile, balances are still read in intervals. */
const RETRY_MS = 5_000;

/** Follows an account's events: notifies the user and refreshes the data. */
export default function LiveEvents({ account }: { account: AccountId }): JSX.Element {
  const { client } = useNetwork();
  const queries = useQueryClient();
  const { assets } = useKnownAssets();
  useEffect(() => {
    const abort = new AbortController();
    const refresh = oneAtATime(() => refreshAccount(queries, account));
    const follow = async (): Promise<void> => {
      while (!abort.signal.aborted) {
        try {
          // Read the account first: the streams continue from the displayed view.
          const view = await readAccount(queries, client, account, assets).catch(() => undefined);
          const from = view === undefined ? {} : { from: view.cursor };
          for await (const event of client.watch(account, { ...from, signal: abort.signal })) {
            refresh();
            const text = words(event);
            if (text === undefined || abort.signal.aborted) continue;
            const closeButtonProps = { "aria-label": "Close this notice" };
            notifications.show({ ...text, color: "teal", autoClose: 8_000, closeButtonProps });
          }
        } catch {
          // Too few authorities stream to this page. The account is read in intervals, and the watch is restarted.
        }
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    };
    void follow();
    return () => abort.abort();
  }, [account, assets, client, queries]);
  return <Notifications position="bottom-right" />;
}

/** Runs a task, one run at a time. A call during a run starts one more run afterwards, however many calls there are. */
function oneAtATime(task: () => Promise<void>): () => void {
  let isRunning = false;
  let isWanted = false;
  const run = async (): Promise<void> => {
    isRunning = true;
    try {
      while (isWanted) {
        isWanted = false;
        await task();
      }
    } finally {
      isRunning = false;
    }
  };
  return () => {
    isWanted = true;
    if (!isRunning) void run();
  };
}

function words(event: AccountEvent): { title: ReactNode; message: string } | undefined {
  switch (event.type) {
    case "received": {
      const { amount, asset, sender, memo } = event.payment;
      const message = memo === NO_MEMO ? "It can be spent now." : `“${decodeMemo(memo)}”`;
      const title = (
        <>
          Received <Money units={amount} asset={asset} /> from {shortAccount(sender)}
        </>
      );
      return { title, message };
    }
    case "deposited": {
      const title = (
        <>
          Deposited <Money units={event.amount} asset={event.asset} />
        </>
      );
      return { title, message: "It can be spent now." };
    }
    case "confirmed":
      return undefined;
  }
}
