import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import type { UnlockCost, UnlockStatus } from "@fastpay/sdk";
import type { JSX } from "react";

import type { Owner } from "../../account/OwnerProvider";
import { useActivities, useActivityActions } from "../../activity/ActivityProvider";
import { ChainButton } from "../../activity/ChainButton";
import { useUnlockCost, useUnlockStatus } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { amountAtAGlance, timeText } from "../../ui/words";
import { IconLock } from "../../ui/icons";

/** A notice that no order can get a quorum any more, with buttons to unlock the account. */
export function StuckNotice({ owner, sequence }: { owner: Owner; sequence: bigint }): JSX.Element | null {
  const { client, config } = useNetwork();
  const { account, signer } = owner;
  const { start } = useActivityActions();
  const status = useUnlockStatus(account, sequence);
  const cost = useUnlockCost();
  const isRunning = useActivities(account).some(({ kind, state }) => kind === "unlock" && state === "running");
  if (isRunning) return null;
  if (config.ledger !== undefined) {
    return (
      <Alert role="alert" color="orange" icon={<IconLock aria-hidden />} title="This account is stuck">
        <Text size="sm">
          Two conflicting orders were signed with number {sequence.toString()}, perhaps on two devices, so neither can get
          enough votes any more. You can still receive. No page can request to unlock it on a ledger: ask the committee&apos;s
          operators.
        </Text>
      </Alert>
    );
  }
  const isAsked = status !== undefined && status.state !== "none";
  const title = "Unlock this account";
  const relay = (): void => {
    start({ kind: "unlock", account, title, work: ({ report, signal }) => client.unlock("relayer", signer, { onProgress: report, signal }) });
  };
  return (
    <Alert role="alert" color="orange" icon={<IconLock aria-hidden />} title="This account is stuck">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          Two conflicting orders were signed with number {sequence.toString()}, perhaps on two devices, so neither can get
          enough votes any more. You can still receive. To pay again, have Ethereum decide: either one of the orders is
          finished, or neither is and nothing was paid.
        </Text>
        <Text size="sm">{isAsked ? askedText(status) : costText(cost)}</Text>
        <Group gap="xs">
          <ChainButton
            owner={owner}
            kind="unlock"
            title={title}
            disabled={cost === undefined}
            work={(wallet, { report, signal }) => client.unlock(wallet, signer, { onProgress: report, signal })}
          >
            {isAsked ? "Continue unlocking" : title}
          </ChainButton>
          {config.relayers.length > 0 && (
            <Button size="xs" variant="default" onClick={relay}>
              {isAsked ? "Wait for a relayer" : "Let a relayer unlock it"}
            </Button>
          )}
        </Group>
      </Stack>
    </Alert>
  );
}

/** Describes a request to unlock, which an earlier visit or another device may have made. */
function askedText(status: UnlockStatus): string {
  if (status.state !== "requested" || status.isDecided) return "Ethereum has decided. The authorities will read the decision shortly.";
  if (!status.isFinal) return "The unlock request is on Ethereum, but not final yet.";
  const from = timeText(Number(status.voidableFrom) * 1_000);
  return `The unlock was requested. If all authorities vote, Ethereum decides at once; otherwise a quorum suffices from ${from} on.`;
}

function costText(cost: UnlockCost | undefined): string {
  const price =
    cost === undefined
      ? "Loading the cost …"
      : `It takes two transactions, about ${amountAtAGlance(cost.wei, 18)} ETH of gas, and a bond of ${amountAtAGlance(cost.bond, 18)} ETH. The bond comes back if neither order is finished; otherwise it goes to whoever brings the votes. A relayer may pay for all that.`;
  return `${price} It takes about half an hour if all authorities answer, and some days otherwise.`;
}
