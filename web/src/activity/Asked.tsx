import { Stack, Text } from "@mantine/core";
import type { JSX } from "react";

import { Facts } from "../ui/Facts";
import { unlockFields } from "../ui/signed";
import { signedFacts, SignedOrder } from "../ui/SignedFacts";
import type { Activity } from "./activities";
import { askedStep } from "./steps";

/** The fields that the wallet asks to sign now. They stay visible while the wallet's dialog is open. */
export function Asked({ activity }: { activity: Activity }): JSX.Element | null {
  const step = askedStep(activity);
  if (step === undefined) return null;
  const { facts } = activity.plan;
  if ("what" in step && step.what !== "unlock-request" && facts === undefined) return null;
  return (
    <Stack component="section" gap="xs" aria-label="To be signed">
      <Text size="sm">Compare this with what your wallet shows.</Text>
      {"transfer" in step ? (
        <SignedOrder transfer={step.transfer} />
      ) : (
        <Facts facts={step.what === "unlock-request" ? signedFacts(unlockFields(step.account, step.sequence)) : (facts ?? [])} />
      )}
    </Stack>
  );
}
