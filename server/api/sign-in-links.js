import { z } from 'zod'
import { DeckError } from '../errors.js'
import { operation } from './endpoint.js'
import { TIME } from './fields.js'
import { schemeOf } from './scheme.js'

/**
 * One-time sign-in links for whoever holds the token (`clusterdeck open`). A session cannot make one: it would
 * never have to end.
 * @param {{ links: import('../admin/sign-in-links.js').Links }} parts
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function signInLinkResources ({ links }) {
  return {
    '/sign-in-links': {
      POST: operation({
        name: 'createSignInLink',
        summary: 'A one-time sign-in link',
        role: 'admin',
        cli: 'clusterdeck open',
        status: 201,
        answer: z.strictObject({ url: z.url(), expiresAt: TIME }).meta({ id: 'SignInLink' }),
        handle ({ auth, req }) {
          if (auth.via !== 'token') throw new DeckError('forbidden', 'Sign-in links require the token, not a session')
          const { code, expiresAt } = links.create()
          // The name that the caller used is one that the caller can reach, and the guard has checked it.
          const url = `${schemeOf(req)}://${req.headers.host}/sign-in?code=${code}`
          return { body: { url, expiresAt: new Date(expiresAt).toISOString() } }
        }
      })
    }
  }
}
