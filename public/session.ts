/** A session that has ended while a page was open. */

let asking: Promise<void> | null = null

/**
 * Asks to sign in over the page. What was typed stays, and `clusterdeck:signed-in` tells when it is done. `why`: the
 * session has ended.
 */
export function signInAgain (why: string | null = null) {
  asking ??= import('./sign-in.ts').then(({ askToSignIn }) => askToSignIn(why)) // The master does not answer: the page says so already, and this is asked again once it does.
    .catch(() => {}).finally(() => {
      asking = null
    })
}
