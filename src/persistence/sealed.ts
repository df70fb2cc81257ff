// Texts that are encrypted in the database where there is a cipher.

import type { Cipher } from './cipher.ts';
import { fromDocument, toDocument } from './entities.ts';

/** A column of `document`: the text as JSON without a cipher. */
export function sealed(text: string, purpose: string, cipher: Cipher | undefined): string {
  return cipher === undefined ? toDocument(text) : cipher.encrypt(text, purpose);
}

/** Undefined when the text cannot be read: its key is gone. */
export function opened(column: string, purpose: string, cipher: Cipher | undefined): string | undefined {
  try {
    // Encrypted texts never begin with a quotation mark.
    return column.startsWith('"') ? String(fromDocument(column)) : cipher?.decrypt(column, purpose);
  } catch {
    return undefined;
  }
}
