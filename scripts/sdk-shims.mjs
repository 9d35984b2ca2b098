// Stands in for the SDK's platform shims. A server with tools only never validates JSON Schema: it asks no client for input.
// The global one: to import `node:process` reads every property of it, and some take a millisecond to make.
export const { process } = globalThis;

export class DefaultJsonSchemaValidator {
  getValidator() {
    throw new Error(
      'Colibri was bundled without a JSON Schema validator, because nothing in it should ask for one',
    );
  }
}
