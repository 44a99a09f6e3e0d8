import { createBrowserRouter } from "react-router";

import { Broken } from "./app/Broken";
import { Root } from "./app/Root";

/** All places; the code of each is loaded when it is gone to. */
export const router = createBrowserRouter([
  {
    element: <Root />,
    errorElement: <Broken />,
    hydrateFallbackElement: <></>,
    children: [
      { index: true, lazy: () => import("./pages/HomePage") },
      { path: "pay", lazy: () => import("./pages/PayPage") },
      { path: "pay/list", lazy: () => import("./pages/PayListPage") },
      { path: "receive", lazy: () => import("./pages/ReceivePage") },
      { path: "deposit", lazy: () => import("./pages/DepositPage") },
      { path: "redeem", lazy: () => import("./pages/RedeemPage") },
      { path: "history", lazy: () => import("./pages/HistoryPage") },
      { path: "network", lazy: () => import("./pages/NetworkPage") },
      { path: "explore", lazy: () => import("./pages/explore/ExplorePage") },
      { path: "explore/account/:account", lazy: () => import("./pages/explore/AccountPage") },
      { path: "explore/transfer/:digest", lazy: () => import("./pages/explore/TransferPage") },
      { path: "explore/transfer/:account/:sequence", lazy: () => import("./pages/explore/TransferPage") },
      { path: "*", lazy: () => import("./pages/NowherePage") },
      { path: "explore/deposit/:index", lazy: () => import("./pages/explore/DepositPage") },
    ],
  },
]);
