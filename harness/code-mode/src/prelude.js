// What a script finds when it begins: `tools` and `console`, and behind them nothing but `dispatch`
// and `print`. What is used here is taken before the script runs, so that a script that changes the
// built-in objects changes them for itself only.
(function (dispatch, print, mounted) {
  "use strict";
  const { stringify } = JSON;
  const { create, defineProperty, freeze } = Object;
  const PromiseOf = Promise;
  const ErrorOf = Error;
  const TypeErrorOf = TypeError;
  const StringOf = String;
  const Bytes = Uint8Array;
  const apply = Reflect.apply;
  const toWellFormed = StringOf.prototype.toWellFormed;
  const wellFormed = (text) => apply(toWellFormed, text, []);

  // Calls that have no result yet, by number.
  const pending = create(null);

  const call = (index, id, given) =>
    new PromiseOf((resolve, reject) => {
      if (given.length > 1) {
        throw new TypeErrorOf(`tools.${id} takes one object with all arguments`);
      }
      const text = given.length === 0 ? "{}" : stringify(given[0]);
      if (text === undefined) {
        throw new TypeErrorOf(`the arguments of tools.${id} are no JSON value`);
      }
      const number = dispatch(index, text);
      pending[number] = { resolve, reject };
    });

  const table = create(null);
  for (let index = 0; index < mounted.length; index += 1) {
    const { id, name } = mounted[index];
    const value = freeze(async (...given) => call(index, id, given));
    defineProperty(table, id, { value, enumerable: true });
    if (id !== name) {
      defineProperty(table, name, { value });
    }
  }
  freeze(table);
  let known = "";
  for (let index = 0; index < mounted.length; index += 1) {
    known += (index === 0 ? "" : ", ") + mounted[index].id;
  }
  // Whoever looks at an object on its way through `await` or JSON asks for these.
  const quiet = freeze({ __proto__: null, then: true, toJSON: true, constructor: true, toString: true });
  const handler = freeze({
    __proto__: null,
    get(target, key) {
      if (typeof key === "string" && target[key] === undefined && quiet[key] === undefined) {
        throw new TypeErrorOf(
          known === "" ? `there is no tools.${key}, and no other tool` : `there is no tools.${key}; there are: ${known}`,
        );
      }
      return target[key];
    },
  });

  const show = (value) => {
    try {
      if (typeof value === "string") {
        return value;
      }
      if (value instanceof ErrorOf) {
        return explain(value);
      }
      if (typeof value === "object" && value !== null) {
        const text = stringify(value);
        if (text !== undefined) {
          return text;
        }
      }
      return StringOf(value);
    } catch (failure) {
      try {
        return StringOf(value);
      } catch (again) {
        return "[cannot be shown]";
      }
    }
  };

  const explain = (thrown) => {
    try {
      if (thrown instanceof ErrorOf) {
        const { name, message, code, stack } = thrown;
        let text = `${name}: ${message}`;
        if (typeof code === "string") {
          text = `${name} [${code}]: ${message}`;
        }
        if (typeof stack === "string" && stack !== "") {
          text += `\n${stack}`;
        }
        return wellFormed(text);
      }
    } catch (failure) {
      return "[an error that cannot be shown]";
    }
    return wellFormed(`a value that is no Error: ${show(thrown)}`);
  };

  const log = (...values) => {
    let line = "";
    for (let index = 0; index < values.length; index += 1) {
      line += (index === 0 ? "" : " ") + show(values[index]);
    }
    print(wellFormed(line));
  };
  const console = freeze({ __proto__: null, log, info: log, warn: log, error: log, debug: log });

  defineProperty(globalThis, "tools", { value: new Proxy(table, handler) });
  defineProperty(globalThis, "console", { value: console });

  const settle = (number, failed, value, code) => {
    const { resolve, reject } = pending[number];
    delete pending[number];
    if (!failed) {
      resolve(value);
      return;
    }
    const error = new ErrorOf(value);
    defineProperty(error, "code", { value: code, enumerable: true, writable: true, configurable: true });
    reject(error);
  };
  // Whether so many bytes of memory are to be had.
  const hasRoom = (bytes) => {
    try {
      return new Bytes(bytes).length === bytes;
    } catch (failure) {
      return false;
    }
  };
  return { settle, explain, hasRoom };
})
