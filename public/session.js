/** A session that has ended while a page was open. */

/** @type {Promise<void> | null} */
let asking = null

/**
 * Asks to sign in over the page. What was typed stays, and `clusterdeck:signed-in` tells when it is done.
 * @param {string | null} [why] the session has ended
 */
export function signInAgain (why = null) {
  asking ??= import('./sign-in.js')
    .then(({ askToSignIn }) => askToSignIn(why))
    // The master does not answer: the page says so already, and this is asked again once it does.
    .catch(() => {})
    .finally(() => { asking = null })
}
