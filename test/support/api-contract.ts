import assert from 'node:assert/strict'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

/** `path`: without the query; `headers`: by their names in small letters */
type Answer = { method: string, path: string, status: number, headers: Record<string, string | undefined>,
  body: unknown }

/** Holds answers of the API against its OpenAPI document. */
export function createContract (document: any) {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  // @ts-expect-error its types know only the default export of CommonJS
  addFormats(ajv)
  ajv.addSchema({ $id: 'document', ...document })
  const operations = Object.entries<Record<string, any>>(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => {
      return { pattern: patternOf(path), path, method: method.toUpperCase(), operation: operation as any }
    })
  )
  const seen: Set<string> = new Set()

  return {
    /** All, by name. */
    names: operations.map(({ operation }) => operation.operationId) as string[],

    /** Those that have answered as they should when all goes well. */
    seen,

    /** `name`: of a component */
    checkShape (name: string, value: unknown) {
      assert.ok(ajv.validate({ $ref: `document#/components/schemas/${name}` }, value),
        `${name}: ${ajv.errorsText(ajv.errors?.slice(0, 5))}`)
    },

    check ({ method, path, status, headers, body }: Answer) {
      const found = operations.find((each) => each.method === method && each.pattern.test(path))
      assert.ok(found, `${method} ${path} is not in the document`)
      const { operation } = found
      const where = `${operation.operationId}: ${status} ${JSON.stringify(body)?.slice(0, 2000)}`
      const answer = resolve(document, operation.responses[status])
      assert.ok(answer, `not in the document: ${where}`)
      const type = String(headers['content-type']).split(';')[0]
      assert.ok(answer.content[type], `${type} is not in the document: ${where}`)
      for (const [name, { required }] of Object.entries<{ required?: boolean }>(answer.headers ?? {}))
        if (required) assert.ok(headers[name.toLowerCase()], `no ${name}: ${where}`)
      if (type.endsWith('json')) {
        const schema = inDocument(answer.content[type].schema)
        assert.ok(ajv.validate(schema, body), `${ajv.errorsText(ajv.errors?.slice(0, 5))}: ${where}`)
      }
      if (status < 400) seen.add(operation.operationId)
    }
  }
}

/** `path`: that of another member has slashes */
function patternOf (path: string) {
  return new RegExp(`^${path.replace('{path}', '.+').replace(/\{\w+\}/g, '[^/]+')}$`)
}

function resolve (document: any, answer: any) {
  return answer?.$ref ? document.components.responses[answer.$ref.split('/').at(-1)] : answer
}

/** Its references lead into the document. */
function inDocument (schema: object) {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/'))
}
