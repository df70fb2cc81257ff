// The end of a conversation that its owner has no more use for.

import type { Conversation } from './transport.ts';

/** Closes a conversation; resolves within the time limit of its transport. Never rejects. */
export async function closeQuietly(conversation: Pick<Conversation, 'close'>): Promise<void> {
  try {
    await conversation.close();
  } catch {
    // Closing must not fail, and nothing else could close a faulty transport.
  }
}
