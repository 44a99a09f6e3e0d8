import { Card } from "@mantine/core";
import type { JSX } from "react";

import { Facts } from "../../ui/Facts";
import { useContractStatus } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { Copyable } from "../../ui/AccountText";
import { Page } from "../../ui/Page";
import { SearchBox } from "./SearchBox";

export default function ExplorePage(): JSX.Element {
  const { config } = useNetwork();
  const status = useContractStatus().data;
  return (
    <Page
      title="Explore"
      lead="For anyone, without a wallet. This page believes no authority: it checks the votes here, against the committee that the contract names."
      width={720}
    >
      <SearchBox />
      <Card withBorder component="section" aria-label="This deployment">
        <Facts
          facts={[
            ["Chain", `${config.chainName} (${config.chainId})`],
            ["Contract", <Copyable key="contract" text={config.contract} name="the contract's address" />],
            ["Events of the contract so far", status?.lastTransactionIndex.toString()],
            ["Epoch", status?.epoch.toString()],
          ]}
        />
      </Card>
    </Page>
  );
}
