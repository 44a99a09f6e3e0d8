import { Alert, Card, Code, Stack, Text } from "@mantine/core";
import { formatAccount } from "@fastpay/sdk";
import type { JSX } from "react";
import { Link } from "react-router";

import { Copyable } from "../../ui/AccountText";
import { IconArrowDownToArc } from "../../ui/icons";
import { WithOwner } from "../../ui/Notices";
import { Page } from "../../ui/Page";

/** How an account is funded on a ledger. A page cannot do it: the key of a reserve signs an instruction to the ledger. */
export function LedgerDepositPage({ committee }: { committee: number }): JSX.Element {
  return (
    <Page title="Deposit" lead="From a reserve on the ledger into your FastPay account.">
      <WithOwner>
        {({ account }) => (
          <Stack>
            <Alert color="indigo" icon={<IconArrowDownToArc aria-hidden />} title="The owner of a reserve deposits for you">
              <Text size="sm">
                That may be your bank, or you with the command line. The deposit is in your history once a quorum of authorities
                has credited it, usually within seconds.
              </Text>
            </Alert>
            <Card withBorder component="section" aria-label="With the command line">
              <Stack gap="xs">
                <Text size="sm">Your account</Text>
                <Copyable text={formatAccount(account)} name="your account" />
                <Text size="sm">With the key of the reserve, in a wallet of committee {committee} on this ledger</Text>
                <Code style={{ overflowWrap: "anywhere" }}>{`fastpay deposit AMOUNT --to ${formatAccount(account)}`}</Code>
              </Stack>
            </Card>
            <Text size="sm">
              Anybody who has money in FastPay can also <Link to="/receive">pay you</Link>.
            </Text>
          </Stack>
        )}
      </WithOwner>
    </Page>
  );
}
