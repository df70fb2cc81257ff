// Texts that are encrypted in the database where there is a cipher, and the purposes of all of them.

import { type Cipher, CipherError } from '../cipher.ts';
import { fromDocument, toDocument } from './entities.ts';

/** The text for a column of type `document`: encrypted, or as JSON without a cipher. */
export function sealed(text: string, purpose: string, cipher: Cipher | undefined): string {
  return cipher === undefined ? toDocument(text) : cipher.encrypt(text, purpose);
}

/** The text in such a column; undefined when it cannot be read, because its key is gone. */
export function opened(column: string, purpose: string, cipher: Cipher | undefined): string | undefined {
  try {
    return plainOf(column) ?? cipher?.decrypt(column, purpose);
  } catch {
    return undefined;
  }
}

/**
 * The text again, encrypted with the present key; undefined when it is already. Throws CipherError for a text that
 * cannot be read.
 */
export function resealed(column: string, purpose: string, cipher: Cipher): string | undefined {
  let text: string;
  try {
    text = plainOf(column) ?? cipher.decrypt(column, purpose);
  } catch (thrown) {
    if (thrown instanceof CipherError) throw thrown;
    throw new CipherError('this is neither encrypted nor a JSON text', { cause: thrown });
  }
  return cipher.isCurrent(column) ? undefined : cipher.encrypt(text, purpose);
}

/** The text that was stored without a cipher. Encrypted texts never begin with a quotation mark. */
function plainOf(column: string): string | undefined {
  return column.startsWith('"') ? String(fromDocument(column)) : undefined;
}

/** The secret fields of an instance, each in a column of its own. */
export const SECRET_FIELDS = ['env', 'headers', 'auth'] as const;
export type SecretField = (typeof SECRET_FIELDS)[number];

/** What a text is encrypted for: it can be decrypted in this field of this row only. */
export function purposeOfInstance(
  { template, id }: { readonly template: string; readonly id: string },
  field: SecretField,
): string {
  return `instance:${template}/${id}:${field}`;
}

export function purposeOfSession(key: string): string {
  return `session:${key}`;
}

export function purposeOfList(key: string): string {
  return `list:${key}`;
}

export function purposeOfOAuth({ kind, key }: { readonly kind: string; readonly key: string }): string {
  return `oauth:${kind}:${key}`;
}
