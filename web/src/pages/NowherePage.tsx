import { Button, Group } from "@mantine/core";
import type { JSX } from "react";
import { Link } from "react-router";

import { Page } from "../ui/Page";

/** The page for unknown addresses. */
export default function NowherePage(): JSX.Element {
  return (
    <Page title="Page not found" lead="The address is mistyped, or belongs to another version of this page.">
      <Group>
        <Button component={Link} to="/">
          Back to the wallet
        </Button>
        <Button component={Link} to="/explore" variant="default">
          Search
        </Button>
      </Group>
    </Page>
  );
}
