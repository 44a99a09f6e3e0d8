import { ActionIcon, Anchor, Box, Group, Text, useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import type { JSX, MouseEvent, ReactNode } from "react";
import { Link, NavLink } from "react-router";

import { Logo } from "../ui/Logo";
import { IconHistory, IconHome2, IconMoon, IconQrcode, IconSearch, IconSend, IconSun } from "../ui/icons";

const PLACES = [
  { to: "/", label: "Wallet" },
  { to: "/pay", label: "Pay" },
  { to: "/receive", label: "Receive" },
  { to: "/deposit", label: "Deposit" },
  { to: "/redeem", label: "Redeem" },
  { to: "/history", label: "History" },
  { to: "/explore", label: "Explore" },
];
const TABS = [
  { to: "/", label: "Wallet", Icon: IconHome2 },
  { to: "/pay", label: "Pay", Icon: IconSend },
  { to: "/receive", label: "Receive", Icon: IconQrcode },
  { to: "/history", label: "History", Icon: IconHistory },
  { to: "/explore", label: "Explore", Icon: IconSearch },
];

/** The frame of every page: navigation above, or below on a phone; `account` is in the header. */
export function Shell({ account, children }: { account: ReactNode; children: ReactNode }): JSX.Element {
  return (
    <>
      <a className="skip" href="#main" onClick={skip}>
        Skip to content
      </a>
      <header className="top">
        <Group h="100%" px="md" justify="space-between" wrap="nowrap" maw={1120} mx="auto">
          <Anchor component={Link} to="/" c="inherit" aria-label="FastPay home">
            <Group gap="xs" wrap="nowrap">
              <Logo />
              <Text fw={700} size="lg" visibleFrom="xs">
                FastPay
              </Text>
            </Group>
          </Anchor>
          <Group component="nav" className="places" gap={4} visibleFrom="md" aria-label="Places">
            {PLACES.map(({ to, label }) => (
              <NavLink key={to} to={to} end={to === "/"}>
                {label}
              </NavLink>
            ))}
          </Group>
          <Group gap="xs" wrap="nowrap">
            <SchemeButton />
            {account}
          </Group>
        </Group>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <Box component="nav" className="tabs" hiddenFrom="md" aria-label="Places">
        {TABS.map(({ to, label, Icon }) => (
          <NavLink key={to} to={to} end={to === "/"}>
            <Icon size={22} aria-hidden />
            {label}
          </NavLink>
        ))}
      </Box>
    </>
  );
}

/**
 * Moves the focus to the page's content. The address is unchanged, because its part after the `#` is a payment link.
 */
function skip(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function SchemeButton(): JSX.Element {
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme("light");
  const other = scheme === "dark" ? "light" : "dark";
  return (
    <ActionIcon variant="default" size={36} onClick={() => setColorScheme(other)} aria-label={`Use the ${other} theme`}>
      {scheme === "dark" ? <IconSun size={18} aria-hidden /> : <IconMoon size={18} aria-hidden />}
    </ActionIcon>
  );
}
