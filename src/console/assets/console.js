// Makes the console more pleasant where a browser runs it; every page works without.
//
// An update of a part of the page keeps what somebody is doing there, confirmations become dialogs, files can be
// dropped, times can be read in the time of the reader, and a page whose server is away says so.
"use strict";
(() => {
  const attribute = (name, value) => `[${name}="${CSS.escape(value)}"]`;
  // A selector for the same element after the update, or null: by its id, by where it leads, or by its field.
  const place = (el) => {
    if (el.id) return `#${CSS.escape(el.id)}`;
    if (el.matches("a[href]")) return `a${attribute("href", el.getAttribute("href"))}`;
    const action = el.name && el.form?.getAttribute("action");
    if (action) return `form${attribute("action", action)} ${attribute("name", el.name)}`;
    if (el.matches("summary") && el.parentElement.id) return `#${CSS.escape(el.parentElement.id)} > summary`;
    return el.hasAttribute("aria-label") ? attribute("aria-label", el.getAttribute("aria-label")) : null;
  };

  // What the update of a part of the page would lose.
  const remember = (part) => {
    const all = (selector) => [...part.querySelectorAll(selector)];
    const active = document.activeElement;
    return {
      // An element with an id keeps focus and caret by htmx itself.
      focus: part.contains(active) && !active.id ? place(active) : null,
      caret: active.selectionStart ?? null,
      open: all("details[open]").map(place),
      typed: all("input:not([type=hidden], [type=file]), textarea")
        .filter((el) => el.value !== el.defaultValue || el.checked !== el.defaultChecked)
        .map((el) => [place(el), el.value, el.checked]),
      scrolled: all("[tabindex]").filter((el) => el.scrollLeft || el.scrollTop).map((el) => [place(el), el.scrollLeft, el.scrollTop]),
    };
  };
  const restore = ({ focus, caret, open, typed, scrolled }) => {
    const at = (selector, act) => {
      const el = selector && document.querySelector(selector);
      if (el) act(el);
    };
    for (const selector of open) at(selector, (el) => (el.open = true));
    for (const [selector, value, checked] of typed) {
      at(selector, (el) => (["checkbox", "radio"].includes(el.type) ? (el.checked = checked) : (el.value = value)));
    }
    for (const [selector, left, top] of scrolled) at(selector, (el) => el.scrollTo(left, top));
    at(focus, (el) => {
      el.focus({ preventScroll: true });
      if (caret !== null && el.matches("textarea, input")) el.setSelectionRange?.(caret, caret);
    });
  };
  let kept = null;
  const answers = new Map();
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const { path, verb } = detail.requestConfig;
    // Nothing has changed: what somebody has selected stays selected.
    if (verb === "get" && answers.get(path) === detail.serverResponse) detail.shouldSwap = false;
    answers.set(path, detail.serverResponse);
    kept = detail.shouldSwap ? remember(detail.target) : null;
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (kept) restore(kept);
    kept = null;
    localTimes();
  });

  // Times are written in UTC; the time of the reader is shown on pointing at them.
  const localTimes = () => {
    for (const el of document.querySelectorAll("time[datetime]:not([title])")) el.title = new Date(el.dateTime).toLocaleString();
  };
  document.addEventListener("DOMContentLoaded", localTimes);

  // What was just done is told once: neither a page that is loaded again nor a link to it says so.
  document.addEventListener("DOMContentLoaded", () => {
    const place = new URL(location.href);
    if (!place.searchParams.has("notice")) return;
    place.searchParams.delete("notice");
    history.replaceState(history.state, "", place);
  });

  // A confirmation that would unfold in the page is asked in a dialog, which keeps the keyboard and closes by Escape.
  document.addEventListener("click", (event) => {
    const summary = event.target.closest?.("details.confirm:not([open]) > summary");
    const form = summary?.parentElement.querySelector("form");
    if (!form) return;
    event.preventDefault();
    const details = summary.parentElement;
    const [dialog, title, close] = ["dialog", "h2", "button"].map((name) => document.createElement(name));
    title.id = "dialog-title";
    title.textContent = summary.textContent;
    dialog.setAttribute("aria-labelledby", title.id);
    close.type = "button";
    close.className = "close";
    close.textContent = "Cancel";
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      // The page may have been updated behind the dialog; then the new one has a form of its own.
      close.remove();
      if (details.isConnected) details.append(form);
      dialog.remove();
      const again = details.isConnected ? summary : document.querySelector(place(summary) ?? "main");
      again?.focus();
    });
    form.append(close);
    // A file is saved and no page follows: there is nothing left to confirm.
    if (form.getAttribute("action").endsWith("/download")) {
      form.addEventListener("submit", () => setTimeout(() => dialog.close()), { once: true });
    }
    dialog.append(title, form);
    document.body.append(dialog);
    dialog.showModal();
    form.querySelector("input:not([type=hidden]), textarea, button").focus();
  });

  // A file that is dropped on a page with a field for one is put into it, wherever it is dropped.
  const dropZone = () => document.querySelector(".drop");
  for (const name of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      const zone = dropZone();
      const field = zone?.querySelector("input[type=file]");
      // A text that is dragged goes where it is dropped.
      if (!field || !event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      zone.classList.toggle("over", name === "dragover");
      if (name !== "drop" || event.dataTransfer.files.length === 0) return;
      const kind = field.form?.querySelector('[name="kind"][value="bundle"]');
      if (kind) kind.checked = true;
      field.files = event.dataTransfer.files;
      field.dispatchEvent(new Event("change", { bubbles: true }));
    });
  }

  // A file is sent only where one is asked about, not with each letter of a text.
  document.addEventListener("htmx:configRequest", ({ detail }) => {
    const kind = detail.formData.get("kind");
    if (kind !== null && kind !== "bundle") detail.formData.delete("file");
  });

  // What stood there was of something else: a trial that is refused leaves no verdict behind.
  const refuse = (target, message) => {
    if (target?.id !== "playground-result") return false;
    const told = document.createElement("p");
    told.className = "error";
    told.setAttribute("role", "alert");
    told.textContent = message;
    target.replaceChildren(told);
    return true;
  };
  document.addEventListener("htmx:beforeRequest", (event) => {
    const field = event.target.querySelector?.("input[type=file][data-bytes-max]");
    const isMeant = event.target.querySelector?.('[name="kind"][value="bundle"]')?.checked;
    const [file] = (isMeant && field?.files) || [];
    if (file && file.size > Number(field.dataset.bytesMax)) {
      event.preventDefault();
      refuse(event.detail.target, "The file is larger than 10 MiB. Larger bundles can be checked with `portcullis review`.");
    }
  });

  // Who is no longer logged in gets the page that asks for it; who cannot be answered is told.
  const away = document.createElement("p");
  away.className = "caution away";
  away.setAttribute("role", "status");
  document.addEventListener("htmx:responseError", (event) => {
    const { xhr, target } = event.detail;
    if (xhr.status === 401) return location.reload();
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    const told = page.querySelector("main .error")?.textContent ?? `The server answered with ${xhr.status}.`;
    if (refuse(target, told)) return;
    away.textContent = `The page could not be updated: ${told} What you see may be out of date; it is asked again.`;
    document.body.append(away);
  });
  for (const name of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(name, (event) => {
      if (refuse(event.detail.target, "The server does not answer. Try again in a moment.")) return;
      away.textContent = "The server does not answer. What you see may be out of date; it is asked again.";
      document.body.append(away);
    });
  }
  document.addEventListener("htmx:afterOnLoad", (event) => {
    if (event.detail.successful) away.remove();
  });
})();
