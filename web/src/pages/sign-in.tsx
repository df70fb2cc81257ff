// Sign-in. It is shown in place of the requested page, whose address stays.

import { useEffect, useState } from 'preact/hooks';
import { hasExpired, signIn, signInWays, type Ways } from '../account.ts';
import { messageOf } from '../api.ts';
import { Field } from '../parts/field.tsx';
import { Logo } from '../parts/logo.tsx';
import { Failure } from '../parts/status.tsx';

export function SignInPage() {
  const [error, setError] = useState<string | undefined>();
  const [isBusy, setBusy] = useState(false);
  const [ways, setWays] = useState<Ways>({ passwords: true, providers: [] });
  useEffect(() => void signInWays().then(setWays, () => {}), []);
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
        The first start creates the user <code>admin</code>, and says where its password is.
      </p>
    </>
  );
  return (
    <main class="sign-in">
      <Logo />
      <h1>Sign in</h1>
      {hasExpired.value && <p class="callout idle">Your session has ended. Sign in to continue.</p>}
      {ways.providers.map(({ label, url }) => (
        <a class="button primary" href={url}>
          Sign in with {label}
        </a>
      ))}
      {ways.passwords ? (
        form
      ) : (
        <details>
          <summary>Other ways</summary>
          {form}
        </details>
      )}
    </main>
  );
}
