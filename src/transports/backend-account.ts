// The accounts at a backend that wants OAuth, as its transport uses them. src/vault has them.

/** The access tokens of one owner for one backend that wants OAuth. */
export interface BearerTokens {
  /** The token to be sent now; a promise while it is read or renewed. Rejects with CONNECTION_REQUIRED. */
  current(): string | Promise<string>;
  /** The backend refused this token. Resolves with true when there is another one. Rejects as `current`. */
  renewed(refused: string): Promise<boolean>;
  /**
   * The backend also refused the token of `renewed`: the account has to be connected again. Resolves with
   * CONNECTION_REQUIRED.
   */
  refusedAgain(refused: string): Promise<Error>;
  /** The backend wants these scopes, which the token does not have. Resolves with CONNECTION_REQUIRED. */
  lacks(scopes: readonly string[]): Promise<Error>;
}

/** The accounts at one backend that wants OAuth. */
export interface BackendAccount {
  readonly who: 'user' | 'shared';
  /** Asks the backend which authorization server it wants. Rejects with BACKEND_UNAVAILABLE, also when that has changed. */
  check(): Promise<void>;
  tokens(owner: string): BearerTokens;
  /** Asks for an answer without an account, which may be a 401. Rejects with BACKEND_UNAVAILABLE. */
  probe(): Promise<void>;
  /** Where this caller connects the shared account; undefined when it may not. Default: unknown. */
  readonly addressFor?: ((caller: string) => Promise<string | undefined>) | undefined;
  /** Calls the listener when the shared account is connected at this node, until the returned function is called. */
  onConnected(listener: () => void): () => void;
}
