import { createTheme, type CSSVariablesResolver } from "@mantine/core";

export const theme = createTheme({
  primaryColor: "indigo",
  // Dark enough that white text on it reads well (WCAG AA).
  primaryShade: { light: 8, dark: 8 },
  defaultRadius: "md",
  autoContrast: true,
  respectReducedMotion: true,
  fontFamily: "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
  components: {
    Card: { defaultProps: { radius: "lg", padding: "md" } },
    TextInput: { defaultProps: { size: "md" } },
    NativeSelect: { defaultProps: { size: "md" } },
    PasswordInput: { defaultProps: { size: "md", visibilityToggleButtonProps: { "aria-label": "Show what is typed" } } },
    Modal: {
      // The dialog's header must not be announced as the page's banner.
      defaultProps: { closeButtonProps: { "aria-label": "Close" }, attributes: { header: { role: "presentation" } } },
      styles: { title: { fontWeight: 600 } },
    },
    Badge: { defaultProps: { variant: "light", tt: "none", fw: 600 } },
  },
});

/** Darker colours for secondary text: the library's are too pale to be readable for everyone. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "#4b5563",
    "--mantine-color-placeholder": "#6b7280",
    "--mantine-color-anchor": "var(--mantine-color-indigo-8)",
    "--mantine-color-body": "#f8f9fc",
    "--fastpay-card": "#ffffff",
    "--fastpay-here": "var(--mantine-color-indigo-0)",
    "--fastpay-here-text": "var(--mantine-color-indigo-9)",
    "--mantine-color-error": "var(--mantine-color-red-9)",
  },
  dark: {
    "--mantine-color-dimmed": "#b0b6c2",
    "--mantine-color-placeholder": "#8f96a3",
    "--mantine-color-anchor": "var(--mantine-color-indigo-3)",
    "--fastpay-card": "var(--mantine-color-dark-6)",
    "--fastpay-here": "var(--mantine-color-dark-5)",
    "--fastpay-here-text": "var(--mantine-color-indigo-2)",
    "--mantine-color-error": "var(--mantine-color-red-4)",
  },
});
