// Which passwords may be set. How they are hashed is auth/passwords.ts.

import { LIMITS } from './limits.ts';
import { isCleanText } from './text.ts';

export type PasswordFault = 'not text' | 'too long' | 'too short';

/**
 * What is wrong with a new password; undefined when nothing is. It has no NUL characters and lone surrogates, at most
 * LIMITS.passwordBytes of UTF-8 and at least LIMITS.passwordCharacters characters. Source: ADR 16.
 */
export function passwordFault(password: string): PasswordFault | undefined {
  if (!isCleanText(password)) return 'not text';
  if (Buffer.byteLength(password) > LIMITS.passwordBytes) return 'too long';
  return [...password].length < LIMITS.passwordCharacters ? 'too short' : undefined;
}
