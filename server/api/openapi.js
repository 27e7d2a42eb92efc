import { z } from 'zod'
import { PROBLEMS } from '../errors.js'
import { operation } from './endpoint.js'
import { exampleOf } from './examples.js'
import { ID_PARAMETER } from './fields.js'
import { IDEMPOTENCY_KEY } from './idempotency.js'

/**
 * The API as an OpenAPI 3.1 document, made from the operations themselves.
 * @typedef {import('./endpoint.js').Operation} Operation
 * @typedef {import('./endpoint.js').Resource} Resource
 * @typedef {import('../errors.js').ErrorCode} ErrorCode
 * @typedef {Record<string, any>} Json
 * @typedef {{ about: string, resources: Record<string, Resource> }} Group
 * @typedef {object} Mount
 * @property {string} base
 * @property {Record<string, import('./endpoint.js').Schema>} [path]  parameters of the base
 * @property {readonly ErrorCode[]} [problems]  that any of its operations may have, beside the usual ones
 * @property {Record<string, Group>} groups
 */

const JSON_TYPE = 'application/json'
/** Fields that the schemas of the configuration have for its own use. */
const OF_OPTIONS = ['kind', 'hint', 'expected', 'separator']
const PROBLEM_TYPE = 'application/problem+json'

/** Errors that every operation may answer. @type {readonly ErrorCode[]} */
const ANYWHERE = ['bad-request', 'unauthenticated', 'forbidden', 'not-acceptable', 'rate-limited', 'internal', 'history-unavailable', 'invalid-query']
/** Errors of operations that need no sign-in. @type {readonly ErrorCode[]} */
const ANYWHERE_PUBLIC = ['bad-request', 'forbidden', 'internal', 'invalid-query']
/** @type {readonly ErrorCode[]} */
const WITH_BODY = ['invalid-json', 'payload-too-large', 'unsupported-media-type', 'invalid-body']
/** @type {readonly ErrorCode[]} */
const OF_POSTS = ['idempotency-key-in-use', 'idempotency-key-reused']
/** Every POST has these, beside its own. */
const POST_HEADERS = { 'Idempotency-Key': IDEMPOTENCY_KEY.optional() }

const PROBLEM = z.looseObject({
  type: z.string().describe('urn:clusterdeck:problem: and the code'),
  title: z.string(),
  status: z.int().min(400).max(599),
  detail: z.string().describe('one sentence: what was expected and what was received'),
  code: z.enum(Object.keys(PROBLEMS)),
  errors: z.array(z.strictObject({ path: z.string(), expected: z.string(), received: z.string() })).optional().describe('what is wrong with a query or a body'),
  rollout: z.int().optional().describe('the rollout that prevents it')
}).meta({
  id: 'Problem',
  description: 'An error (RFC 9457). `code` is stable.',
  examples: [{
    type: 'urn:clusterdeck:problem:rollout-running',
    title: 'A rollout is running',
    status: 409,
    detail: 'rollout 7 (deploy) is running',
    code: 'rollout-running',
    rollout: 7
  }]
})

/** @param {() => Json} describe @returns {Record<string, Resource>} */
export function openapiResources (describe) {
  return {
    '/openapi.json': {
      GET: operation({
        name: 'getOpenapi',
        summary: 'Returns this API as an OpenAPI 3.1 document',
        role: 'viewer',
        answer: z.looseObject({ openapi: z.string() }),
        handle: () => ({ body: describe() })
      })
    }
  }
}

/**
 * @param {readonly Mount[]} mounts @param {{ version: string, url?: string }} master
 * @returns {Json}
 */
export function describeApi (mounts, { version, url = '/' }) {
  /** @type {Json} */
  const schemas = {}
  const toSchema = createConverter(schemas)
  const toProblems = createProblems(toSchema)
  const tagged = mounts.flatMap(({ base, path: parameters = {}, problems = [], groups }) => {
    return Object.entries(groups).map(([tag, { resources }]) => ({ base, parameters, problems, tag, resources }))
  })
  const paths = tagged.flatMap(({ base, parameters, problems, tag, resources }) => Object.entries(resources).map(([path, resource]) => {
    const operations = Object
      .entries(resource)
      .map(([method, operation]) => [method.toLowerCase(), describeOperation({
        ...operation,
        path: { ...parameters, ...operation.path },
        problems: [...problems, ...operation.problems ?? []]
      }, { path, method, tag, toSchema, toProblems: toProblems.refer })])
    return [`${base === '/' ? '' : base}${path}`.replace(/[:*](\w+)/g, '{$1}'), Object.fromEntries(operations)]
  }))
  return {
    openapi: '3.1.1',
    info: {
      title: 'clusterdeck',
      version,
      license: { name: 'MIT', identifier: 'MIT' },
      description: 'The admin API of one clusterdeck master. Times are ISO 8601 in UTC, durations end in `Ms`, sizes in `Bytes`. Lists are newest first.'
    },
    servers: [{ url, description: 'the admin port' }],
    security: [{ token: [] }],
    tags: mounts.flatMap(({ groups }) => Object.entries(groups)).map(([name, { about }]) => ({ name, description: about })),
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: '`admin.token` of the data folder, or a token of your own' } },
      responses: toProblems.described,
      schemas: Object.fromEntries(Object.entries(schemas)
        .sort(([a], [b]) => a < b ? -1 : 1)
        .map(([name, schema]) => [name, { ...schema, examples: [exampleOf(schema, schemas)] }]))
    }
  }
}

/**
 * @param {Operation} operation
 * @param {{
 *   path: string,
 *   method: string,
 *   tag: string,
 *   toSchema: ReturnType<typeof createConverter>,
 *   toProblems: ReturnType<typeof createProblems>['refer']
 * }} parts
 */
function describeOperation (operation, { path, method, tag, toSchema, toProblems }) {
  const {
    name,
    summary,
    description,
    role,
    byToken,
    cli,
    body,
    shownBody,
    takes,
    status = 200,
    location,
    hasTag,
    answer,
    others = {},
    problems = []
  } = operation
  const hasId = path.includes(':id')
  /** @type {ErrorCode[]} */
  const codes = [
    ...ANYWHERE,
    ...(method === 'GET' ? [] : WITH_BODY),
    ...(method === 'POST' ? OF_POSTS : [])
  ]
  if (operation.query?.shape.cursor) codes.push('cursor-expired')
  if (path.includes(':')) codes.push('invalid-id')
  codes.push(...problems)
  return {
    operationId: name,
    tags: [tag],
    summary,
    ...(description && { description }),
    ...(role === null && { security: [] }),
    'x-role': role ?? 'anyone',
    ...(byToken && { 'x-by-token': true }),
    ...(cli && { 'x-cli': cli }),
    parameters: [
      ...(hasId ? [toParameter('id', 'path', ID_PARAMETER, toSchema)] : []),
      ...Object.entries(operation.path ?? {}).map(([key, schema]) => toParameter(key, 'path', schema, toSchema)),
      ...Object.entries(operation.query?.shape ?? {}).map(([key, schema]) => toParameter(key, 'query', schema, toSchema)),
      ...Object.entries({ ...operation.headers, ...(method === 'POST' && POST_HEADERS) }).map(([key, schema]) => toParameter(key, 'header', schema, toSchema))
    ],
    ...(body && { requestBody: { required: !body.safeParse({}).success, content: { [JSON_TYPE]: { schema: toSchema(shownBody ?? body, 'input') } } } }),
    ...(takes && { requestBody: { required: true, content: { [takes]: {} } } }),
    responses: {
      [status]: {
        description: summary,
        ...((location || hasTag) && {
          headers: {
            ...(location && { Location: { description: 'the path of what was created', required: true, schema: { type: 'string', format: 'uri-reference' } } }),
            ...(hasTag && { ETag: { description: 'the tag of this state, for `If-Match`', required: true, schema: { type: 'string' } } })
          }
        }),
        content: contentOf(answer, toSchema)
      },
      ...Object.fromEntries(Object.entries(others).map(([other, types]) => [other, { description: 'Another answer', content: contentOf(types, toSchema) }])),
      ...toProblems(role === null ? [...ANYWHERE_PUBLIC, ...problems] : codes)
    }
  }
}

/** @param {Operation['answer']} answer @param {ReturnType<typeof createConverter>} toSchema */
function contentOf (answer, toSchema) {
  const byType = answer instanceof z.ZodType ? { [JSON_TYPE]: answer } : answer
  return Object.fromEntries(Object.entries(byType).map(([type, schema]) => [type, { schema: toSchema(schema, 'output') }]))
}

/**
 * Error answers by status; many operations share them.
 * @param {ReturnType<typeof createConverter>} toSchema
 */
function createProblems (toSchema) {
  const problem = toSchema(PROBLEM, 'output')
  /** @type {Json} by the codes that they may have */
  const described = {}

  return {
    described,

    /** @param {readonly ErrorCode[]} codes @returns {Json} */
    refer (codes) {
      /** @type {Map<number, ErrorCode[]>} */
      const byStatus = new Map()
      for (const code of new Set(codes)) {
        const { status } = PROBLEMS[code]
        byStatus.set(status, [...byStatus.get(status) ?? [], code])
      }
      return Object.fromEntries([...byStatus].map(([status, each]) => [status, describeProblem(status, each)]))
    }
  }

  /** @param {number} status @param {ErrorCode[]} codes */
  function describeProblem (status, codes) {
    const name = codes.join('.')
    described[name] ??= {
      description: codes.map((code) => PROBLEMS[code].title).join('; '),
      ...((status === 429 || status === 503) && { headers: { 'Retry-After': { description: 'seconds', schema: { type: 'integer', minimum: 0 } } } }),
      content: { [PROBLEM_TYPE]: { schema: { ...problem, properties: { code: { enum: codes } } } } }
    }
    return { $ref: `#/components/responses/${name}` }
  }
}

/**
 * @param {string} name @param {'path' | 'query' | 'header'} place @param {z.ZodType} schema
 * @param {ReturnType<typeof createConverter>} toSchema
 */
function toParameter (name, place, schema, toSchema) {
  const { description, ...type } = toSchema(schema, 'input')
  return { name, in: place, required: !schema.safeParse(undefined).success, ...(description && { description }), schema: type }
}

/** @param {z.ZodObject} schema of arguments @returns {Json} as JSON Schema, whole */
export function argumentsSchemaOf (schema) {
  return createConverter({})(schema, 'input')
}

/**
 * Describes a named schema once, among the components.
 * @param {Json} components filled by the way
 */
function createConverter (components) {
  /** @param {z.ZodType} schema @param {'input' | 'output'} io @returns {Json} */
  return (schema, io) => {
    const { $schema: _, $defs = {}, ...converted } = inComponents(z.toJSONSchema(schema, { io, unrepresentable: 'any', override: simplifySchema }))
    Object.assign(components, $defs)
    return converted
  }
}

/** @param {Json} schema */
function inComponents (schema) {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/'))
}

/**
 * A parameter is text; `as` describes the value that it is read as.
 * @param {{ zodSchema: z.core.$ZodType, jsonSchema: Json }} conversion
 */
function simplifySchema ({ zodSchema, jsonSchema }) {
  const as = z.globalRegistry.get(zodSchema)?.as
  if (as) {
    for (const key of Object.keys(jsonSchema)) if (key !== 'description') delete jsonSchema[key]
    Object.assign(jsonSchema, as)
  }
  for (const key of OF_OPTIONS) delete jsonSchema[key]
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
}
