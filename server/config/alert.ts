import { z } from 'zod'
import { templateFlaw } from '../../public/alert-template.ts'
import { ALERT_KINDS, DEFAULT_MAIL_PORT, templateText } from './alert-kinds.ts'
import { DECK_NAME } from './apps.ts'
import { checkEventPattern } from './event-pattern.ts'
import { attempt } from '../errors.ts'

/**
 * One alert: whom clusterdeck tells about which events. The configuration file and the API say it in the same fields.
 */
export type Alert = z.infer<typeof ALERT>
export type AlertKind = Alert['kind']
/** what is left out stays */
export type AlertChanges = z.infer<typeof ALERT_CHANGES>

const MAIL_ADDRESS = z.string().max(254).regex(/^[^\s@<>(),;:\\"[\]]+@[^\s@<>(),;:\\"[\]]+$/)
const line = (max: number) => z.string().min(1).max(max).regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u)

/** fetch() takes no user in an address. */
export const HTTP_URL = z.url({ protocol: /^https?$/ }).max(2000).refine((url) => !/^\w+:\/\/[^/?#]*@/.test(url))

const MAX_TEMPLATE = 4000
/** A form sends it as text, and a configuration file has it as it is. */
const TEMPLATE = z.union([z.string(), z.record(z.string(), z.unknown()), z.array(z.unknown())]).superRefine(
  (body, context) => {
    // TypeError: a program can give a circle or a BigInt.
    const text = attempt(() => templateText(body)) ?? ''
    const flaw = text.length > MAX_TEMPLATE
      ? { expected: `at most ${MAX_TEMPLATE} characters`, received: String(text.length) }
      : templateFlaw(text)
    if (flaw) context.addIssue({ code: 'custom', params: flaw })
  }
)

/** The connection sets these itself. */
const OF_CONNECTION =
  /^(host|connection|content-length|transfer-encoding|keep-alive|upgrade|expect|te|trailer|proxy-.*)$/i
const HEADERS = z.record(z.string().regex(/^[!#$%&'*+.^_`|~\w-]{1,100}$/),
  z.string().max(2000).regex(/^[\t\u0020-\u007e\u0080-\u00ff]*$/)).refine((headers) =>
    Object.keys(headers).length <= 20 && !Object.keys(headers).some((name) => OF_CONNECTION.test(name))
  )

/** What is `writeOnly` is a password or as good as one: no answer, error or event shows it. */
export const ALERT = z.strictObject({ kind: z.enum(ALERT_KINDS).describe(`one of ${ALERT_KINDS.join(', ')}`),
  name: line(60).regex(/\S/).optional().meta({ description: 'a name of at most 60 characters', examples: ['ops'] }),
  events: z.array(z.string().max(100).regex(/^[a-z*][a-z.*-]*(:[a-z*-]+)?$/).superRefine((name, context) => {
    checkEventPattern(name, context, 'a type of events such as worker.*')
  })).min(1).max(100).optional().meta({
    description: 'types of events such as worker.*, or with a cause such as worker.exited:hung; default: the problems',
    examples: [['worker.*', 'rollout.failed']]
  }),
  apps: z.array(z.string().regex(DECK_NAME)).min(1).max(100).optional().meta({
    description: 'of an alert of a host: the names of the apps that it is for; default: all of them',
    examples: [['shop', 'mail']]
  }),
  url: HTTP_URL.optional().meta({ description: 'an http or https address without user and password',
    examples: ['https://example.com/hook'], writeOnly: true }),
  dsn: z.string().max(500).regex(/^https?:\/\/[\w-]+@[\w.:[\]-]+(?:\/[\w.-]+)*\/[\w-]+$/).refine((dsn) =>
    URL.canParse(dsn)
  ).optional().meta({ description: 'a DSN such as https://key@host/project',
    examples: ['https://0123456789abcdef@sentry.example.com/1'], writeOnly: true }),
  secret: line(200).min(16).optional().meta({ description: 'at least 16 characters', writeOnly: true }),
  body: TEMPLATE.optional().meta({
    description:
      'of a webhook: what is sent in place of the event, a JSON object or list whose texts may have placeholders such as {{title}}',
    examples: [{ text: '{{title}}: {{message}}' }],
    writeOnly: true
  }),
  headers: HEADERS.optional().meta({
    description:
      'of a webhook: at most 20 headers as texts by name, such as {"Authorization": "Bearer …"}, none of the connection',
    examples: [{ Authorization: 'Bearer 0123456789abcdef' }],
    writeOnly: true
  }),
  to: z.array(MAIL_ADDRESS).min(1).max(20).optional().meta({ description: 'a list of 1 to 20 mail addresses',
    examples: [['ops@example.com']] }),
  from: MAIL_ADDRESS.optional().meta({ description: 'a mail address', examples: ['clusterdeck@example.com'] }),
  host: z.string().max(253).regex(/^[\w.:-]+$/).optional().meta({ description: 'the name or address of an SMTP server',
    examples: ['smtp.example.com'] }),
  port: z.int().min(1).max(65_535).optional().describe(
    `a port from 1 to 65535; default: ${DEFAULT_MAIL_PORT}; with 465 all is encrypted from the first byte on`
  ), user: line(200).optional().meta({ description: 'a name of at most 200 characters', writeOnly: true }),
  password: line(500).optional().meta({ description: 'at most 500 characters', writeOnly: true }) }).meta({
    examples: [{ kind: 'slack', name: 'ops', url: 'https://hooks.example.com/services/T0/B0/x' }]
  })

export const ALERT_ID = z.string().regex(/^(?:file-)?[1-9]\d{0,8}$/).meta({
  description: 'the id of an alert such as 3 or file-1',
  examples: ['3']
})

export const ALERT_CHANGES = ALERT.omit({ kind: true }).extend({
  isPaused: z.boolean().optional().describe('true or false'),
  events: ALERT.shape.events.unwrap().nullable().optional().meta({
    description: 'types of events such as worker.*; null: the problems',
    examples: [['worker.*']]
  }),
  apps: ALERT.shape.apps.unwrap().nullable().optional().meta({
    description: 'of an alert of a host: the names of the apps that it is for; null: all of them',
    examples: [['shop']]
  }),
  body: TEMPLATE.nullable().optional().meta({ description: `${ALERT.shape.body.description}; null: the event`,
    examples: [{ text: '{{title}}' }], writeOnly: true }),
  headers: HEADERS.nullable().optional().meta({ description: `${ALERT.shape.headers.description}; null: none`,
    examples: [{ Authorization: 'Bearer 0123456789abcdef' }], writeOnly: true })
}).meta({ examples: [{ isPaused: true }] })
