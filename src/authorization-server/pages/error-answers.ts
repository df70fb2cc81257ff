// The answers to errors before the consent of a user. Any program may register any address, and a link to the
// gateway must not lead there without a click. So an error is sent back only to an address on this computer, one of a client
// that an admin added, or one to which the user has agreed before; else a page shows it, with a link. Source: RFC 9700, 4.11.2.

import { clientKeyOf } from '../../persistence/oauth-rows.ts';
import type { OAuthStore } from '../../persistence/oauth-store.ts';
import { type ClientRecord, isLoopbackRedirect } from '../clients/client-record.ts';
import type { SignIns } from '../sign-ins/sign-ins.ts';
import { faultPage, type Page } from './page.ts';

interface Asked {
  readonly client: Pick<ClientRecord, 'id' | 'source'>;
  /** A redirect address that the client may use. */
  readonly redirectUri: string;
  /** Cookies of the browser. */
  readonly cookies: string | undefined;
}

/** Whether an error may be sent to the client without a decision of the user. */
export async function mayRedirect(
  { client, redirectUri, cookies }: Asked,
  { store, signIns }: { readonly store: Pick<OAuthStore, 'list'>; readonly signIns: Pick<SignIns, 'find'> },
): Promise<boolean> {
  if (client.source === 'added' || isLoopbackRedirect(new URL(redirectUri))) return true;
  const userId = (await signIns.find(cookies))?.user.id;
  if (userId === undefined) return false;
  return (await store.list({ kind: 'grant', userId, clientKey: clientKeyOf(client.id) }, 1)).length > 0;
}

/** `answer`: the address of the client, with the error. */
export function errorPage(clientName: string, description: string, answer: URL): Page {
  const { protocol, host } = answer;
  const place = protocol === 'https:' ? host : `the program that opens links with ${protocol}`;
  return faultPage(400, `${clientName} cannot be connected`, {
    what: `The gateway does not accept its request: ${description}.`,
    next: `The program waits for this answer at ${place}. Go there only if you began this, and tell the maker of the program.`,
    back: { text: `Go to ${place}`, path: answer.href },
  });
}
