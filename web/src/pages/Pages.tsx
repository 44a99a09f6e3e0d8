import { lazy, Suspense, useEffect, type JSX } from "react";
import { Route, Routes, useLocation, useNavigationType } from "react-router";

import { HomePage } from "./HomePage";

const PayPage = lazy(() => import("./PayPage"));
const PayListPage = lazy(() => import("./PayListPage"));
const ReceivePage = lazy(() => import("./ReceivePage"));
const DepositPage = lazy(() => import("./DepositPage"));
const RedeemPage = lazy(() => import("./RedeemPage"));
const HistoryPage = lazy(() => import("./HistoryPage"));
const NetworkPage = lazy(() => import("./NetworkPage"));
const ExplorePage = lazy(() => import("./explore/ExplorePage"));
const AccountPage = lazy(() => import("./explore/AccountPage"));
const TransactionPage = lazy(() => import("./explore/TransactionPage"));
const ContactsPage = lazy(() => import("./ContactsPage"));
const TransferPage = lazy(() => import("./explore/TransferPage"));
const ExploredDepositPage = lazy(() => import("./explore/DepositPage"));
const HelpPage = lazy(() => import("./HelpPage"));
const NowherePage = lazy(() => import("./NowherePage"));

/** All pages by their addresses. The code of each page except the first is loaded on demand. */
export function Pages(): JSX.Element {
  return (
    <>
      <ScrollToTop />
      <Suspense>
        <Routes>
          <Route index element={<HomePage />} />
          <Route path="pay" element={<PayPage />} />
          <Route path="pay/list" element={<PayListPage />} />
          <Route path="receive" element={<ReceivePage />} />
          <Route path="deposit" element={<DepositPage />} />
          <Route path="redeem" element={<RedeemPage />} />
          <Route path="history" element={<HistoryPage />} />
          <Route path="network" element={<NetworkPage />} />
          <Route path="contacts" element={<ContactsPage />} />
          <Route path="help" element={<HelpPage />} />
          <Route path="explore" element={<ExplorePage />} />
          <Route path="explore/account/:account" element={<AccountPage />} />
          <Route path="explore/deposit/:index" element={<ExploredDepositPage />} />
          <Route path="explore/transaction/:hash" element={<TransactionPage />} />
          <Route path="explore/transfer/:digest" element={<TransferPage />} />
          <Route path="explore/transfer/:account/:sequence" element={<TransferPage />} />
          <Route path="*" element={<NowherePage />} />
        </Routes>
      </Suspense>
    </>
  );
}

/** A new page starts at its top. The browser restores the position on back navigation. */
function ScrollToTop(): null {
  const { pathname } = useLocation();
  const type = useNavigationType();
  useEffect(() => {
    if (type !== "POP") window.scrollTo(0, 0);
  }, [pathname, type]);
  return null;
}
