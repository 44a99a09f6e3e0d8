import { Center, Loader, Stack, Text, Title } from "@mantine/core";
import type { JSX } from "react";
import { useLocation } from "react-router";

import { EarlyConnect } from "../account/EarlyConnect";
import { wasUsed } from "../account/last";
import { Welcome } from "../pages/home/Welcome";
import { Logo } from "../ui/Logo";
import { Shell } from "./Shell";

/**
 * The page until the wallet's code and the deployment are loaded. A first visit shows the start page. Other pages and
 * returning users see a loader, because they need both.
 */
export function Arrival(): JSX.Element {
  const { pathname } = useLocation();
  const isStart = pathname === "/" && !wasUsed();
  return (
    <Shell account={<EarlyConnect place="header" />}>
      {isStart ? <Welcome connect={<EarlyConnect place="page" size="md" />} /> : <Reading />}
    </Shell>
  );
}

function Reading(): JSX.Element {
  return (
    <Center mih="60vh" p="md">
      <Stack align="center">
        <Logo size={48} />
        <Title order={1} size="h2">
          FastPay
        </Title>
        <Loader aria-hidden />
        <Text role="status">Loading …</Text>
      </Stack>
    </Center>
  );
}
