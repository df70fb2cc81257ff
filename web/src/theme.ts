// Dark or light: the theme of the system until the user chooses one. style/base.css has the colours, by `light-dark()`.

import { effect, signal } from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';
const KEY = 'stagedoor-theme';

export const theme = signal<Theme>(stored());

export function startTheme(): void {
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
    try {
      localStorage.setItem(KEY, theme.value);
    } catch {
      // The browser forbids storage: the choice lasts until the page is closed.
    }
  });
}

function stored(): Theme {
  try {
    const text = localStorage.getItem(KEY);
    return text === 'light' || text === 'dark' ? text : 'auto';
  } catch {
    return 'auto'; // storage is forbidden
  }
}
