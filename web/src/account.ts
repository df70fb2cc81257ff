// The account that uses the console: sign-in and sign-out, and the rights of the account. The gateway decides
// on each request; the console only hides actions that it would refuse.

import { batch, computed, effect, signal } from '@preact/signals';
import { ApiError, beginSession, change, get, messageOf, refusals } from './api.ts';
import { Newest } from './newest.ts';
import type { Account, Scope } from './types.ts';

/** `undefined` until it is known, `null` when sign-in is needed; still there when its session has expired. */
export const account = signal<Account | null | undefined>(undefined);
/** The reason why the account is unknown, when the gateway does not answer. */
export const accountError = signal<string | undefined>(undefined);
/** True when the session of the account has expired: its page stays as it is, with the filled-in fields, behind the sign-in. */
export const hasExpired = signal(false);

export const isAdmin = computed(() => mayDo('admin'));
export const mayWrite = computed(() => mayDo('gateway:write'));
/** Authentication is off: the gateway accepts commands and changes of accounts only from the command line. */
export const isOpen = computed(() => account.value?.kind === 'anonymous');
export const mayCall = computed(() => mayDo('tools:call'));

function mayDo(scope: Scope): boolean {
  return account.value?.scopes.includes(scope) ?? false;
}

/** The account with which this page read its data: state, calls and their arguments. */
let ownerId: string | undefined;

/** Loads the account at the start of a page. After a sign-in at an identity provider, the other pages have to follow it. */
export async function startAccount(): Promise<void> {
  await loadAccount();
  if (account.value) tellOtherPages(account.value.id);
}

const reads = new Newest();

/**
 * Reads the account that the cookie belongs to, or the anonymous one while authentication is off. False when the cookie may
 * have changed since.
 */
export async function loadAccount(): Promise<boolean> {
  const isNewest = reads.begin();
  try {
    const now = await get<Account>('auth/me');
    if (!isNewest()) return false;
    if (ownerId !== undefined && ownerId !== now.id) {
      location.reload(); // another account sees none of it
      return await new Promise(() => {});
    }
    ownerId = now.id;
    beginSession();
    batch(() => {
      account.value = now;
      accountError.value = undefined;
      hasExpired.value = false;
    });
  } catch (thrown) {
    if (!isNewest()) return false;
    if (thrown instanceof ApiError && thrown.status === 401) forget();
    else accountError.value = messageOf(thrown);
  }
  return true;
}

export async function signIn(username: string, password: string): Promise<void> {
  await change('POST', 'auth/login', { username, password });
  tellOtherPages(undefined); // not later: another account loads this page again
  if (!(await loadAccount())) return;
  if (accountError.value !== undefined) throw new ApiError(accountError.value, 0);
  if (account.value === null) throw new ApiError('The browser did not keep the session cookie.', 0);
}

export async function signOut(): Promise<void> {
  await change('POST', 'auth/logout');
  forget();
  tellOtherPages(null);
}

function forget(): void {
  reads.begin();
  batch(() => {
    hasExpired.value = false;
    account.value = null;
  });
}

/** The other pages of the console in this browser: they share the cookie, and so the account. */
const otherPages = new BroadcastChannel('stagedoor-account');

/**
 * Tells the other pages of a sign-in or sign-out. `accountId`: the present owner of the cookie; undefined when this page has not
 * read it yet, null after a sign-out.
 */
function tellOtherPages(accountId: string | undefined | null): void {
  otherPages.postMessage(accountId);
}

/** Follows the sign-ins and sign-outs of other pages: requests of this page are those of the new account. */
export function watchOtherPages(): void {
  otherPages.onmessage = ({ data: accountId }: MessageEvent<string | undefined | null>) => {
    if (accountId && accountId === account.value?.id && !hasExpired.value) return;
    if (accountId === null) forget(); // before requests are refused: the session has not expired
    void loadAccount();
  };
}

/** Asks for sign-in when the gateway refuses the session. */
export function watchRefusals(): void {
  effect(() => {
    if (refusals.value === 0 || !account.peek()) return;
    hasExpired.value = true;
  });
}
