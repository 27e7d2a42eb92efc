import { z } from 'zod'
import { DeckError } from '../errors.js'
import { operation } from './endpoint.js'
import { PERSON_NAME, ROLE, TIME } from './fields.js'

const LINK_BODY = z.strictObject({
  name: PERSON_NAME.optional(),
  role: ROLE.optional()
}).meta({ examples: [{ name: 'ada', role: 'viewer' }] })

/**
 * One-time sign-in links for whoever holds the token (`clusterdeck open`). A session cannot make one: it would
 * never have to end.
 * @param {{ links: import('../admin/sign-in-links.js').Links, urlFor: (req: import('node:http').IncomingMessage) => string }} parts `urlFor`: where who asks reaches this site
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function signInLinkResources ({ links, urlFor }) {
  return {
    '/sign-in-links': {
      POST: operation({
        name: 'createSignInLink',
        summary: 'A one-time sign-in link',
        role: 'admin',
        cli: 'clusterdeck open',
        body: LINK_BODY,
        status: 201,
        isSecret: true,
        answer: z.strictObject({ url: z.url(), expiresAt: TIME }).meta({ id: 'SignInLink' }),
        handle ({ auth, body: { name = null, role = 'admin' }, req }) {
          if (auth.via !== 'token') throw new DeckError('forbidden', 'Sign-in links require the token, not a session')
          // Who has made it by a token of its own loses it with that one.
          const { code, expiresAt } = links.create({ name, role, token: auth.token })
          return { body: { url: `${urlFor(req)}/sign-in?code=${code}`, expiresAt: new Date(expiresAt).toISOString() } }
        }
      })
    }
  }
}
