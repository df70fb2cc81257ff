// The entry point of the console.

import { render } from 'preact';
import { startAccount, watchOtherPages, watchRefusals } from './account.ts';
import { App } from './app.tsx';
import './parts/first-script.ts';
import { preparePage } from './pages.ts';
import { startRouter } from './router.ts';
import { startStore } from './store.ts';
import './style/index.css';
import { startTheme } from './theme.ts';

startTheme();
startRouter(preparePage);
watchRefusals();
watchOtherPages();
startStore();
void startAccount();

const root = document.getElementById('root');
if (root !== null) render(<App />, root);
