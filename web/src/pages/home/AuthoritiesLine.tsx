import { Group, Text } from "@mantine/core";
import type { AccountId } from "@fastpay/sdk";
import type { JSX } from "react";
import { Link } from "react-router";

import { useKnownAssets } from "../../data/assets";
import { useAccount } from "../../data/queries";
import { IconCircleFilled } from "../../ui/icons";

/** The number of authorities that answered at once, with a link to the network page. */
export function AuthoritiesLine({ account }: { account: AccountId }): JSX.Element | null {
  const { assets } = useKnownAssets();
  const states = useAccount(account, assets).data?.states;
  if (states === undefined) return null;
  const answering = states.filter(({ answer }) => answer !== undefined).length;
  const isWhole = answering === states.length;
  const color = isWhole ? "var(--mantine-color-teal-6)" : "var(--mantine-color-orange-6)";
  return (
    <Group gap="xs" role="status">
      <IconCircleFilled size={10} color={color} aria-hidden />
      <Text size="sm" c="dimmed">
        {answering} of {states.length} authorities{" "}
        {isWhole ? "answer." : "answered at once; a quorum is enough."}{" "}
        <Link to="/network">Show them</Link>
      </Text>
    </Group>
  );
}
