import { lazy, Suspense, type JSX } from "react";

import { ConnectButton } from "../account/ConnectButton";
import { useOwners } from "../account/OwnerProvider";
import { Welcome } from "./home/Welcome";

const Wallet = lazy(() => import("./home/Wallet"));

export function HomePage(): JSX.Element {
  const { owner } = useOwners();
  if (owner === undefined) return <Welcome connect={<ConnectButton place="page" size="md" />} />;
  return (
    <Suspense>
      <Wallet key={owner.account} owner={owner} />
    </Suspense>
  );
}
