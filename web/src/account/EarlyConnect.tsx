import { Button } from "@mantine/core";
import { useLayoutEffect, useRef, useState, type JSX } from "react";

import { IconWallet } from "../ui/icons";
import { wasUsed } from "./last";

/** The two buttons to connect: one in the header, one on pages that need an account. */
export type ConnectPlace = "header" | "page";

/** The button that the user had pressed or focused when the wallet's code took over, and the page's path. */
let left: { readonly place: ConnectPlace; readonly isPressed: boolean; readonly path: string } | undefined;

/**
 * Returns, once, whether the button of this place was pressed or only focused before the wallet's code was loaded.
 * Undefined if it was neither, or if the user has left that page: then no dialog opens unexpectedly.
 */
export function takeEarly(place: ConnectPlace): { readonly isPressed: boolean } | undefined {
  const taken = left;
  if (taken === undefined || (taken.path === location.pathname && taken.place !== place)) return undefined;
  left = undefined;
  return taken.path === location.pathname ? taken : undefined;
}

/**
 * Replaces `ConnectButton` until the wallet's code is loaded. It records a press, even one that has only begun when the
 * code takes over; the dialog opens then. For a returning user, it shows that the account is being loaded.
 */
export function EarlyConnect({ place, size = "sm" }: { place: ConnectPlace; size?: string }): JSX.Element {
  const button = useRef<HTMLButtonElement>(null);
  const [isPressed, setPressed] = useState(false);
  // A ref changes at once: React may remove this button before it renders the press, or before the pointer is lifted.
  const press = useRef({ hasBegun: false, isDone: false });
  const setBegun = (hasBegun: boolean): void => {
    press.current.hasBegun = hasBegun;
  };
  useLayoutEffect(() => {
    const mine = button.current;
    return () => {
      const isPressed = press.current.hasBegun || press.current.isDone;
      // A press counts even if the focus moved elsewhere after it.
      const isLeft = isPressed || (document.activeElement === mine && left?.isPressed !== true);
      if (isLeft) left = { place, isPressed, path: location.pathname };
    };
  }, [place]);
  return (
    <Button
      ref={button}
      size={size}
      leftSection={<IconWallet size={18} aria-hidden />}
      onPointerDown={(event) => setBegun(event.button === 0)}
      onPointerLeave={() => setBegun(false)}
      onPointerCancel={() => setBegun(false)}
      onKeyDown={(event) => setBegun(event.key === " ")}
      onBlur={() => setBegun(false)}
      onClick={() => {
        press.current.isDone = true;
        setPressed(true);
      }}
      loading={isPressed || wasUsed()}
    >
      Connect wallet
    </Button>
  );
}
