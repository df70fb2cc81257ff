// Sign-in. It is shown in place of the requested page, whose address stays.

import { useState } from 'preact/hooks';
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
  const [error, setError] = useState<string | undefined>();
  const [isBusy, setBusy] = useState(false);
  // Where the gateway does not say, there are passwords alone.
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
    <main class="sign-in">
      <Logo />
      <h1>Sign in</h1>
      {hasExpired.value && (
        <p class="callout idle">Your session has ended. Sign in to continue where you were.</p>
      )}
      {ways?.providers.map(({ label, url }) => (
        <a key={url} class="button primary" href={url}>
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
    </main>
  );
}
