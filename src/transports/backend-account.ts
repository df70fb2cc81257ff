// The accounts at a backend that wants OAuth, as its transport uses them. src/vault implements these interfaces.

/** The access tokens of one owner for one backend that wants OAuth. */
export interface BearerTokens {
  /** The token to send; a promise while it is read or renewed. Throws CONNECTION_REQUIRED. */
  current(): string | Promise<string>;
  /** Renews a token that the backend refused. Resolves with true when there is another one. Throws like `current`. */
  renewed(refused: string): Promise<boolean>;
  /**
   * Reports that the backend also refused the token of `renewed`. The account has to be connected again: resolves
   * with CONNECTION_REQUIRED.
   */
  refusedAgain(refused: string): Promise<Error>;
  /** Reports that the backend wants scopes that the token does not have. Resolves with CONNECTION_REQUIRED. */
  missingScopes(scopes: readonly string[]): Promise<Error>;
}

/** The accounts at one backend that wants OAuth. */
export interface BackendAccount {
  readonly who: 'user' | 'shared';
  /** Asks the backend which authorization server it uses. Throws BACKEND_UNAVAILABLE, also when that has changed. */
  check(): Promise<void>;
  tokens(owner: string): BearerTokens;
  /** Requests an answer without an account, which may be a 401. Throws BACKEND_UNAVAILABLE. */
  probe(): Promise<void>;
  /** The address at which this caller connects the shared account; undefined when it may not. Default: unknown. */
  readonly addressFor?: ((callerId: string) => Promise<string | undefined>) | undefined;
  /** Calls the listener when the shared account is connected at this node, until the returned function is called. */
  onConnected(listener: () => void): () => void;
}
