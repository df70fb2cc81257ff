// Sign-in. It is shown in place of the requested page, whose address stays; or over a page whose session has ended.

import { useEffect, useRef, useState } from 'preact/hooks';
import { hasExpired, signIn } from '../account.ts';
import { get, messageOf } from '../api.ts';
import { Field } from '../parts/field.tsx';
import { useLoaded } from '../parts/load.ts';
import { Logo } from '../parts/logo.tsx';
import { Failure } from '../parts/status.tsx';

interface Ways {
  readonly passwords: boolean;
  readonly providers: readonly { readonly label: string; readonly url: string }[];
}

export function SignInPage() {
  return (
    <main class="sign-in">
      <Logo />
      <SignIn />
    </main>
  );
}

/** The sign-in that covers the page and its dialogs, which keep their filled-in fields. */
export function SignInAgain() {
  const dialog = useRef<HTMLDialogElement>(null);
  const show = (): void => dialog.current?.showModal();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    addEventListener('keydown', keepOpen);
    show();
    return () => {
      removeEventListener('keydown', keepOpen);
      before?.focus();
    };
  }, []);
  return (
    // Other ways to close it than the key, such as the gesture for back, show it again.
    <dialog ref={dialog} class="whole" aria-labelledby="sign-in" onClose={show}>
      <div class="sign-in">
        <Logo />
        <SignIn />
      </div>
    </dialog>
  );
}

/** Escape would close it, and pressed again a dialog behind it. */
function keepOpen(event: KeyboardEvent): void {
  if (event.key === 'Escape') event.preventDefault();
}

function SignIn() {
  const [error, setError] = useState<string | undefined>();
  const [isBusy, setBusy] = useState(false);
  // If the gateway does not say, there are only passwords.
  const { data: ways } = useLoaded(() => get<Ways>('oauth/ways'), []);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setError(undefined);
    try {
      await signIn(String(form.get('username')), String(form.get('password')));
    } catch (thrown) {
      setError(messageOf(thrown));
    } finally {
      setBusy(false);
    }
  };
  const form = (
    <>
      <form onSubmit={(event) => void submit(event)}>
        <Field label="User name">
          <input name="username" autocomplete="username" required autofocus maxLength={1_024} />
        </Field>
        <Field label="Password">
          <input name="password" type="password" autocomplete="current-password" required maxLength={1_024} />
        </Field>
        {error !== undefined && <Failure text={error} />}
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? 'Signing in…' : 'Sign in'}
        </button>
      </form>
      <p class="muted">
        The first start of a gateway creates the user <code>admin</code>, and says where its password is.
      </p>
    </>
  );
  return (
    <>
      <h1 id="sign-in">Sign in</h1>
      {hasExpired.value && (
        <p class="callout idle">Your session has ended. Sign in to continue where you were.</p>
      )}
      {ways?.providers.map(({ label, url }) => (
        <a key={url} class="button primary" href={url} target={hasExpired.value ? '_blank' : undefined}>
          Sign in with {label}
        </a>
      ))}
      {ways?.passwords === false ? (
        <details>
          <summary>Other ways</summary>
          {form}
        </details>
      ) : (
        form
      )}
    </>
  );
}
