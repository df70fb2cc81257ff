// The frame around all pages: navigation, connection, theme, account. Without an account it shows sign-in in place of the page.

import { useEffect, useRef, useState } from 'preact/hooks';
import { account, accountError, hasExpired, isAdmin, loadAccount, signOut } from './account.ts';
import { connection } from './events.ts';
import { SignInAgain, SignInPage } from './pages/sign-in.tsx';
import { isPage, loadedPage, PAGES, preparePage } from './pages.ts';
import { Icon, type IconName } from './parts/icon.tsx';
import { Logo } from './parts/logo.tsx';
import { attempt, Notices } from './parts/notices.tsx';
import { Empty, Failure, Loading } from './parts/status.tsx';
import { href, type PageName, route } from './router.ts';
import { type Theme, theme } from './theme.ts';

export function App() {
  if (account.value === undefined) return <Starting />;
  return (
    <>
      {account.value === null ? <SignInPage /> : <Shell />}
      {hasExpired.value && <SignInAgain />}
      <Notices />
    </>
  );
}

function Starting() {
  const error = accountError.value;
  return (
    <main class="sign-in">
      {error === undefined ? (
        <Loading what="the console" />
      ) : (
        <Failure text={error} onRetry={() => void loadAccount()} />
      )}
    </main>
  );
}

function Shell() {
  const { page } = route.value;
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const menu = useRef<HTMLButtonElement>(null);
  const title = isPage(page) ? PAGES[page].title : 'Not found';
  useEffect(() => {
    document.title = `${title} · Stagedoor`;
    setMenuOpen(false);
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
  }, [page]);
  useEffect(() => {
    if (!isMenuOpen) return;
    const close = ({ key }: KeyboardEvent): void => {
      if (key !== 'Escape') return;
      setMenuOpen(false);
      menu.current?.focus();
    };
    addEventListener('keydown', close);
    return () => removeEventListener('keydown', close);
  }, [isMenuOpen]);
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="side">
        <div class="brand">
          <a href={href('overview')} aria-label="Stagedoor, overview">
            <Logo />
          </a>
          <button
            ref={menu}
            type="button"
            class="plain menu"
            aria-expanded={isMenuOpen}
            aria-controls="navigation"
            onClick={() => setMenuOpen(!isMenuOpen)}
          >
            <Icon name="menu" />
            Menu
          </button>
        </div>
        <div id="navigation" class={isMenuOpen ? 'navigation open' : 'navigation'}>
          <Navigation current={page} />
          <div class="side-end">
            <ConnectionState />
            <ThemeSwitch />
            <AccountBox />
          </div>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {connection.value === 'offline' && (
          <p class="callout warn" role="alert">
            <Icon name="warn" />
            The connection to the gateway is lost. Reconnecting…
          </p>
        )}
        <Page name={page} />
      </main>
    </div>
  );
}

function Page({ name }: { readonly name: string }) {
  if (!isPage(name) || (PAGES[name].isForAdmins && !isAdmin.value)) {
    return (
      <>
        <h1>Not found</h1>
        <Empty title="Page not found, or your account may not see it.">
          <a href={href('overview')}>Go to the overview</a>
        </Empty>
      </>
    );
  }
  return <LoadedPage name={name} />;
}

function LoadedPage({ name }: { readonly name: PageName }) {
  const View = loadedPage(name);
  if (View === undefined) return <Loading what="the page" />;
  if (typeof View === 'function') return <View />;
  const { text, isOutdated } = View;
  return (
    <>
      <h1>{PAGES[name].title}</h1>
      {isOutdated ? (
        <Failure text={text} action="Reload" onRetry={() => location.reload()} />
      ) : (
        <Failure text={text} onRetry={() => void preparePage(name)} />
      )}
    </>
  );
}

function Navigation({ current }: { readonly current: string }) {
  return (
    <nav aria-label="Pages">
      <ul>
        {Object.entries(PAGES).map(([name, { title, icon, isForAdmins = false, isUseful }]) =>
          !isPage(name) ||
          icon === undefined ||
          (isForAdmins && !isAdmin.value) ||
          isUseful?.() === false ? null : (
            <li key={name}>
              <a href={href(name)} aria-current={name === current ? 'page' : undefined}>
                <Icon name={icon} />
                {title}
              </a>
            </li>
          ),
        )}
      </ul>
    </nav>
  );
}

const CONNECTIONS = {
  connecting: { icon: 'starting', tone: 'idle', text: 'Connecting…' },
  live: { icon: 'healthy', tone: 'ok', text: 'Live' },
  offline: { icon: 'warn', tone: 'warn', text: 'Offline' },
  refused: { icon: 'info', tone: 'idle', text: 'No live updates' },
} as const;

function ConnectionState() {
  const { icon, tone, text } = CONNECTIONS[connection.value];
  return (
    <p class={`connection tone-${tone}`}>
      <Icon name={icon} />
      {text}
    </p>
  );
}

const THEMES: readonly { readonly value: Theme; readonly icon: IconName; readonly label: string }[] = [
  { value: 'auto', icon: 'auto', label: 'System' },
  { value: 'light', icon: 'sun', label: 'Light' },
  { value: 'dark', icon: 'moon', label: 'Dark' },
];

function ThemeSwitch() {
  return (
    <fieldset class="segments" aria-label="Colours">
      {THEMES.map(({ value, icon, label }) => (
        <button
          key={value}
          type="button"
          title={label}
          aria-label={label}
          aria-pressed={theme.value === value}
          onClick={() => {
            theme.value = value;
          }}
        >
          <Icon name={icon} />
        </button>
      ))}
    </fieldset>
  );
}

function AccountBox() {
  const { kind, name } = account.value ?? {};
  if (kind === 'anonymous') return <p class="muted small">Authentication is off: no account is needed.</p>;
  return (
    <div class="account">
      <span class="name">{name}</span>
      <button type="button" class="plain" onClick={() => void attempt(signOut, 'You are signed out.')}>
        <Icon name="leave" />
        Sign out
      </button>
    </div>
  );
}
